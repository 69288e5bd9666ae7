"""`transduce play`: a page to try regressions in, and its server, over the public API only
(docs/playground.md).

The import below comes before the page's own: it says what to install where there is nothing to
serve with."""

from ..serving.start import start as start
