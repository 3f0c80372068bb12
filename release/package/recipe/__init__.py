"""The package once more, as Pyodide's own tools make it: recipes, built by ``pyodide build-recipes``, and compared.

A static-library recipe brings the host libraries, a package recipe links the side module with them. The command that
links and the files that are packed are those of the direct path, so whatever differs is of pyodide-build's making.

>>> write_recipes(parts, contents, pins, recipes, pyodide=toolchain.pyodide)
>>> tools = prepare_tools(pins, toolchain, cache=cache_folder(), progress=Progress())
>>> built = build_recipes(recipes, contents.name, tools, folder=Path("built"), progress=Progress())
>>> require_same(compare(package, built))
"""

from release.package.recipe.build import BuiltRecipe, build_recipes
from release.package.recipe.compare import Difference, compare, describe, require_same
from release.package.recipe.model import Library, Linking, Parts
from release.package.recipe.tools import RecipeTools, prepare_tools
from release.package.recipe.write import write_recipes

__all__ = [
    "BuiltRecipe",
    "Difference",
    "Library",
    "Linking",
    "Parts",
    "RecipeTools",
    "build_recipes",
    "compare",
    "describe",
    "prepare_tools",
    "require_same",
    "write_recipes",
]
