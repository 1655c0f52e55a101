"""The names of spoken languages: any usual spelling to one code and back; it does not know which model speaks which."""

import re

from antiphon.vocabulary.errors import InvalidRequest

_TABLE = """
af  afr         afrikaans
am  amh         amharic
ar  ara         arabic
as  asm         assamese
az  aze         azerbaijani
ba  bak         bashkir
be  bel         belarusian
bg  bul         bulgarian
bn  ben         bengali, bangla
bo  bod,tib     tibetan
br  bre         breton
bs  bos         bosnian
ca  cat         catalan, valencian
cs  ces,cze     czech
cy  cym,wel     welsh
da  dan         danish
de  deu,ger     german
el  ell,gre     greek
en  eng         english
es  spa         spanish, castilian
et  est         estonian
eu  eus,baq     basque
fa  fas,per     persian, farsi
fi  fin         finnish
fo  fao         faroese
fr  fra,fre     french
gl  glg         galician
gu  guj         gujarati
ha  hau         hausa
haw haw         hawaiian
he  heb,iw      hebrew
hi  hin         hindi
hr  hrv         croatian
ht  hat         haitian creole, haitian
hu  hun         hungarian
hy  hye,arm     armenian
id  ind,in      indonesian
is  isl,ice     icelandic
it  ita         italian
ja  jpn         japanese
jw  jav,jv      javanese
ka  kat,geo     georgian
kk  kaz         kazakh
km  khm         khmer
kn  kan         kannada
ko  kor         korean
la  lat         latin
lb  ltz         luxembourgish, letzeburgesch
ln  lin         lingala
lo  lao         lao
lt  lit         lithuanian
lv  lav         latvian
mg  mlg         malagasy
mi  mri,mao     maori
mk  mkd,mac     macedonian
ml  mal         malayalam
mn  mon         mongolian
mr  mar         marathi
ms  msa,may     malay
mt  mlt         maltese
my  mya,bur     myanmar, burmese
ne  nep         nepali
nl  nld,dut     dutch, flemish
nn  nno         nynorsk
no  nor,nb,nob  norwegian
oc  oci         occitan
pa  pan         punjabi, panjabi
pl  pol         polish
ps  pus         pashto, pushto
pt  por         portuguese
ro  ron,rum,mo  romanian, moldavian, moldovan
ru  rus         russian
sa  san         sanskrit
sd  snd         sindhi
si  sin         sinhala, sinhalese
sk  slk,slo     slovak
sl  slv         slovenian
sn  sna         shona
so  som         somali
sq  sqi,alb     albanian
sr  srp         serbian
su  sun         sundanese
sv  swe         swedish
sw  swa         swahili
ta  tam         tamil
te  tel         telugu
tg  tgk         tajik
th  tha         thai
tk  tuk         turkmen
tl  tgl,fil     tagalog, filipino
tr  tur         turkish
tt  tat         tatar
uk  ukr         ukrainian
ur  urd         urdu
uz  uzb         uzbek
vi  vie         vietnamese
yi  yid,ji      yiddish
yo  yor         yoruba
yue yue,zh-yue  cantonese
zh  zho,chi,cmn chinese, mandarin
"""
"""Code, other codes, names (the first is the language's name): the languages and names of Whisper's tokenizer.py.

The first code is Whisper's, ISO 639-1 but for `jw`, `haw` and `yue`; the others are ISO 639-2 and withdrawn codes.
"""

_DETECT = ("", "auto")
_TAG = re.compile(r"[a-z]+(?:-[a-z0-9]{1,8})*")

_CODES: dict[str, str] = {}
_NAMES: dict[str, str] = {}
for _code, _others, _names in (_row.split(maxsplit=2) for _row in _TABLE.strip().splitlines()):
    _NAMES[_code] = _names.split(", ")[0]
    for _spelling in (_code, *_others.split(","), *_names.replace(" ", "-").split(",-")):
        _CODES[_spelling] = _code


def base_language(tag: str | None) -> str | None:
    """Find the language that `tag` names; None says that it is to be detected.

    A tag is a code, a code with regions or scripts ("en-US", "zh_Hant_TW"), or an English name, in any case. None, ""
    and "auto" ask for detection. Raises InvalidRequest (param "language") for all else.
    """
    spelling = "-".join((tag or "").replace("_", "-").split()).lower()
    if spelling in _DETECT:
        return None
    if _TAG.fullmatch(spelling):
        code = _CODES.get(spelling) or _CODES.get(spelling.partition("-")[0])
        if code is not None:
            return code
    raise InvalidRequest(
        f"language {(tag or '')[:40]!r} is not known; give a code such as 'en' or 'en-US', a name such as 'english',"
        " or 'auto' to have it detected",
        param="language",
    )


def language_name(code: str) -> str:
    """Name a language in English and lower case, as OpenAI's verbose_json does; an unknown code names itself."""
    return _NAMES.get(_CODES.get(code.lower(), ""), code)
