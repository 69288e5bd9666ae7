"""What the site needs beside Markdown. Pages are written to be read in the repository; here is what
turns them into a site.

Links that leave docs/ lead to a file of the repository. In the site they lead to a copy: an image
as it is, source as a page that shows it, the README to the front page. Docstrings are prose, not
Markdown: their examples become code, and * and < are what they are."""

import re
from pathlib import Path, PurePosixPath

import griffe
from mkdocs.structure.files import File, InclusionLevel

LINK = re.compile(r"(?<=\]\()((?:\.\./)+[^)#\s]+)")
LANGUAGES = {".py": "python", ".md": "markdown", ".toml": "toml", ".json": "json"}
CODE = re.compile(r"(^ {4,}.*$|`[^`]*`)", re.M)


def copied(page, link, config):
    """The file of the repository that a page's link leads to, and its place in the site; None if it
    stays in docs/."""
    docs = Path(config.docs_dir)
    target = (docs / page.src_uri).parent.joinpath(link).resolve()
    if target.is_relative_to(docs):
        return None
    if target == docs.parent / "README.md":
        return target, "index.md"
    return target, f"source/{target.relative_to(docs.parent).as_posix()}" + ".md" * (
        target.suffix in LANGUAGES
    )


def on_files(files, config):
    """Add the copies."""
    for page in list(files.documentation_pages()):
        for link in LINK.findall(page.content_string):
            target, place = copied(page, link, config) or (None, "index.md")
            if files.get_file_from_path(place) is None:
                code = (
                    f"```` {{.{LANGUAGES.get(target.suffix)}}}\n{target.read_text()}\n````\n"
                    if place.endswith(".md")
                    else ""
                )
                name = target.relative_to(Path(config.docs_dir).parent)
                content = (
                    {"content": f"---\nsearch: {{exclude: true}}\n---\n# {name}\n\n{code}"}
                    if code
                    else {"abs_src_path": str(target)}
                )
                files.append(
                    File.generated(config, place, inclusion=InclusionLevel.NOT_IN_NAV, **content)
                )
    return files


def on_page_markdown(markdown, page, config, files):
    """Lead links to the copies."""

    def lead(link):
        place = copied(page.file, link[0], config)
        up = "../" * (len(PurePosixPath(page.file.src_uri).parts) - 1)
        return link[0] if place is None else up + place[1]

    return markdown if page.file.src_uri.startswith("source/") else LINK.sub(lead, markdown)


def on_page_content(html, **_):
    """Mark the numbers of tables, which are not to be broken in two."""
    return re.sub(r"<td>(?=[-+\d.e/%± ]+</td>)", '<td class="number">', html)


class Prose(griffe.Extension):
    """Docstrings as Markdown that says what they say."""

    def on_instance(self, *, obj, **_):
        if obj.docstring is None or obj.is_alias:
            return
        blocks = []
        for block in obj.docstring.value.split("\n\n"):
            if block.lstrip().startswith(">>>"):
                blocks.append(f"```python\n{block}\n```")
            else:
                parts = CODE.split(block)  # code stands at odd places
                parts[::2] = [
                    re.sub(r"([*\[\]])", r"\\\1", part).replace("<", "&lt;") for part in parts[::2]
                ]
                blocks.append("".join(parts))
        obj.docstring.value = "\n\n".join(blocks)
