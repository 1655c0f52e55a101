"""The catalogue: what ships, and what is refused."""

import pytest

from antiphon.packages.catalogue import WheelTag, parse_catalogue, shipped_catalogue
from antiphon.vocabulary.errors import PackageError


def test_the_shipped_catalogue_speaks_and_listens_by_default() -> None:
    defaults = shipped_catalogue().defaults()

    assert [(package.id, package.family, package.task) for package in defaults] == [
        ("piper-en-joe", "piper", "tts"),
        ("whisper-tiny-en", "whisper", "asr"),
        ("whisper-base", "whisper", "asr"),
        ("silero-vad", "silero_vad", "vad"),
        ("speaker-turns", "speaker_clustering", "diar"),
        ("pocketsphinx-align", "pocketsphinx", "align"),
    ]


def test_every_shipped_part_comes_from_the_folder_of_its_wheel() -> None:
    for package in shipped_catalogue().packages:
        for part in (part for file in package.files for part in file.parts):
            assert part.member.startswith(part.source.replace("-", "_") + "/"), package.id


def test_every_shipped_whisper_package_has_the_tokenizer_without_which_a_hub_is_asked() -> None:
    for package in shipped_catalogue().packages:
        paths = {file.path for file in package.files}
        assert package.family != "whisper" or {"model.bin", "config.json", "tokenizer.json"} <= paths, package.id


def test_shipped_files_share_a_digest_only_where_they_are_the_same_member() -> None:
    packages = shipped_catalogue().packages
    origins = {(file.sha256, file.parts) for package in packages for file in package.files}
    origins |= {(source.sha256, ()) for package in packages for source in package.sources}

    assert len({digest for digest, _ in origins}) == len(origins)


def test_an_unknown_id_is_answered_with_the_known_ones() -> None:
    with pytest.raises(PackageError, match="no package 'whisper-huge'; the catalogue has piper-en-joe, "):
        shipped_catalogue().find("whisper-huge")


def test_a_catalogue_reads_back_as_it_was_written(workshop, as_catalogue) -> None:
    package = workshop.package()

    assert parse_catalogue(as_catalogue(package)).packages == (package,)


def test_a_source_may_name_which_of_a_versions_wheels_it_is(workshop, as_catalogue) -> None:
    text = as_catalogue(workshop.package()).replace("size_bytes", 'tag = "cp311-abi3-linux_x86_64"\nsize_bytes', 1)

    tags = [source.tag for source in parse_catalogue(text).packages[0].sources]

    assert tags == [WheelTag("cp311", "abi3", "linux_x86_64"), None]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ('id = "tiny-voice"', 'id = "../voice"', "is no package id"),
        ('id = "tiny-voice"', 'id = ".staging-x"', "is no package id"),
        ('path = "model.bin"', 'path = "../model.bin"', "no path inside a package"),
        ('path = "model.bin"', 'path = "/etc/model.bin"', "no path inside a package"),
        ('path = "model.bin"', 'path = "deep/config.json"', "path 'deep/config.json' appears twice"),
        ('uri = "wheel:tiny-one==1.0.0"', 'uri = "wheel:tiny-one"', "uri must be wheel:NAME==VERSION"),
        ('uri = "wheel:tiny-one==1.0.0"', 'uri = "wheel:--index-url=x==1"', "uri must be wheel:NAME==VERSION"),
        ('uri = "wheel:tiny-one==1.0.0"', 'uri = "wheel:tiny-two==1.0.0"', "source 'tiny-two' appears twice"),
        ('{ source = "tiny-two"', '{ source = "tiny-one"', r"parts name \['tiny-one'\], its sources are"),
        ('task = "tts"', 'task = "juggle"', "task 'juggle' does not exist"),
        ('mode = "offline"', 'mode = "live"', "mode 'live' does not exist"),
        ("default = true", "default = 1", "default must be true or false"),
        ("size_bytes = ", "size_bytes = -", "size_bytes must be a whole number of bytes"),
        ('sha256 = "', 'sha256 = "x', "sha256 must be 64 hexadecimal digits"),
        ('licence = "CC0"', "", "package tiny-voice: licence is missing"),
        ("size_bytes = ", 'tag = "win_amd64"\nsize_bytes = ', "tag must be PYTHON-ABI-PLATFORM"),
        ("[[package]]", "[package]", "package must be a list"),
        ("[[package]]", "[[package", "is not TOML"),
    ],
)
def test_a_catalogue_with_a_fault_is_refused(workshop, as_catalogue, right: str, wrong: str, message: str) -> None:
    text = as_catalogue(workshop.package())
    assert right in text

    with pytest.raises(PackageError, match=message):
        parse_catalogue(text.replace(right, wrong, 1))
