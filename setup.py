"""Makes the long description: README.md with absolute links. pyproject.toml has everything else."""

import re
from pathlib import Path

from setuptools import setup

REPOSITORY = "https://github.com/relaylang/relaylang/blob/main/"
FILES = "https://raw.githubusercontent.com/relaylang/relaylang/main/"


def absolute(text: str) -> str:
    """A Markdown text of the repository's top folder with its relative links made absolute."""
    link = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
    return link.sub(lambda m: f"{m[1]}[{m[2]}]({FILES if m[1] else REPOSITORY}{m[3]})", text)


readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
setup(long_description=absolute(readme), long_description_content_type="text/markdown")
