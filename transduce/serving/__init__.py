"""`transduce serve`: examples in, an operator's id out; queries in, predictions out, over HTTP
(docs/serving.md)."""

from ..files import pip_install
from ..types import TransduceError

try:
    import fastapi as fastapi
    import uvicorn as uvicorn
except ImportError:
    raise TransduceError(
        "the server is fastapi's and uvicorn's, which are not installed. Install them: "
        f"{pip_install('serve')}"
    ) from None
