"""The GitHub of the tests answers as GitHub says that it answers: judged by GitHub's own OpenAPI description."""

import json
from pathlib import Path
from typing import Any

import pytest
import requests
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from release.artifacts import Artifact
from tests.publish.conftest import TAG, Publishing
from tests.services.github.service import TOKEN
from tests.services.installed import Services

_RELEASES = "/repos/{owner}/{repo}/releases"


class Description:
    """GitHub's description of its API, and what it says of an answer."""

    def __init__(self, path: Path) -> None:
        self._paths: dict[str, Any] = (whole := json.loads(path.read_text()))["paths"]
        components = DRAFT202012.create_resource({"components": _as_json_schema(whole["components"])})
        self._registry: Registry[Any] = Registry().with_resource("urn:github", components)

    def faults(self, method: str, template: str, answer: requests.Response) -> list[str]:
        documented = self._paths[template][method.lower()]["responses"].get(str(answer.status_code))
        if documented is None:
            return [f"{answer.status_code} is not documented"]
        if "$ref" in documented:
            schema: Any = {
                "$ref": "urn:github#" + documented["$ref"].removeprefix("#") + "/content/application~1json/schema"
            }
        else:
            content = documented.get("content", {}).get("application/json")
            if content is None:
                return []  # only that there is such an answer
            schema = _as_json_schema(content["schema"])
        validator = Draft202012Validator(schema, registry=self._registry)
        return [f"{'/'.join(map(str, e.path))}: {e.message[:200]}" for e in validator.iter_errors(answer.json())]


def _as_json_schema(part: Any) -> Any:
    """OpenAPI 3.0 says ``nullable`` where JSON Schema has a type, and refers to what is beside it."""
    if isinstance(part, list):
        return [_as_json_schema(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {key: _as_json_schema(value) for key, value in part.items() if key not in ("example", "format")}
    if isinstance(made.get("$ref"), str):
        made["$ref"] = made["$ref"].replace("#/", "urn:github#/", 1)
    if made.pop("nullable", None) is True:
        return {"anyOf": [made, {"type": "null"}]}
    return made


@pytest.fixture(scope="module")
def description(services: Services) -> Description:
    return Description(services.modules / "@octokit" / "openapi" / "generated" / "api.github.com.json")


def test_every_answer_that_publishing_reads(publishing: Publishing, description: Description) -> None:
    front = publishing.github.url
    base = f"/repos/{publishing.repository.name}"
    release: dict[str, Any] = {}

    def ask(method: str, path: str, template: str, status: int, **options: Any) -> Any:
        headers = {"Authorization": f"Bearer {TOKEN}", **options.pop("headers", {})}
        answer = requests.request(method, front + path, headers=headers, timeout=10, **options)
        assert answer.status_code == status, (path, answer.text)
        assert description.faults(method, template, answer) == [], path
        return answer.json() if answer.content else None

    ask("GET", f"{base}/git/ref/tags/{TAG}", "/repos/{owner}/{repo}/git/ref/{ref}", 200)
    ask("GET", f"{base}/git/ref/tags/none", "/repos/{owner}/{repo}/git/ref/{ref}", 404)
    release = ask("POST", f"{base}/releases", _RELEASES, 201, json={"tag_name": TAG, "draft": True, "body": "x"})
    number, upload = release["id"], release["upload_url"].partition("{")[0].removeprefix(front)
    blob = {"headers": {"Content-Type": "application/octet-stream"}, "data": b"0123456789"}
    assets = f"{_RELEASES}/{{release_id}}/assets"
    asset = ask("POST", f"{upload}?name=a.bin", assets, 201, **blob)
    assert (asset["size"], asset["state"]) == (10, "uploaded")
    ask("POST", f"{upload}?name=a.bin", assets, 422, **blob)
    ask("GET", f"{base}/releases/{number}/assets", assets, 200)
    ask("GET", f"{base}/releases/assets/{asset['id']}", f"{_RELEASES}/assets/{{asset_id}}", 200)
    ask("GET", f"{base}/releases", _RELEASES, 200)
    ask("GET", f"{base}/releases/tags/{TAG}", f"{_RELEASES}/tags/{{tag}}", 404)
    ask("PATCH", f"{base}/releases/{number}", f"{_RELEASES}/{{release_id}}", 200, json={"draft": False})
    ask("GET", f"{base}/releases/tags/{TAG}", f"{_RELEASES}/tags/{{tag}}", 200)
    ask("DELETE", f"{base}/releases/assets/{asset['id']}", f"{_RELEASES}/assets/{{asset_id}}", 204)
    ask("DELETE", f"{base}/releases/{number}", f"{_RELEASES}/{{release_id}}", 204)


def test_the_judge_can_refuse(publishing: Publishing, description: Description) -> None:
    answer = requests.Response()
    answer.status_code = 200
    answer._content = b'{"id": "no number"}'
    assert description.faults("GET", f"{_RELEASES}/{{release_id}}", answer)
    answer.status_code = 299
    assert description.faults("GET", f"{_RELEASES}/{{release_id}}", answer)


def test_an_asset_is_to_be_had_by_everybody_once_it_is_published(publishing: Publishing) -> None:
    publishing.publish()
    url = f"{publishing.github.url}/{publishing.repository.name}/releases/download/{TAG}/package-1.0.zip"
    assert requests.get(url, timeout=10).content == (publishing.folder / "package-1.0.zip").read_bytes()


def test_what_must_not_happen_to_a_published_release_is_seen(publishing: Publishing) -> None:
    publishing.publish()
    seen, host = publishing.github.front.seen, publishing.host
    (release,) = host.releases(TAG)
    host.edit_body(release, release.body.partition("<!--")[0] + "<!-- another comment -->")
    assert seen.violations == []
    host.edit_body(release, "Another text.")
    assert seen.violations == ["the text of a published release was changed"]
    seen.violations.clear()
    stranger = publishing.folder.parent / "stranger.bin"
    stranger.write_bytes(b"stranger")
    host.upload(release, stranger, Artifact.of(stranger))
    assert "a published release was changed" in seen.violations[0]
    seen.violations.clear()
    host.delete_asset(next(asset for asset in host.assets(release) if asset.name == "manifest.json"))
    assert "a published release was changed" in seen.violations[0]
    seen.violations.clear()
    host.delete_draft(release)
    assert seen.violations == ["a published release was deleted"]
