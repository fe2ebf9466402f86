"""Words that a question may leave out, because they occur in nearly every text of their language.

A short list is better than a long one (docs/knowledge.md). It covers the most frequent languages of
questions, folded as texts are. Stop words are left out of questions only, and only if other words are left:
the index contains them, for phrases.
"""

from __future__ import annotations

ENGLISH = """a an and are as at be but by can did do does for from had has have he her his how i if in into is
it its me my of on or our she so than that the their them then there these they this to was we were what when
where which who whom whose why will with would you your"""
GERMAN = """der die das den dem des ein eine einer eines einem einen und oder aber nicht ist sind war waren
wird werden wurde hat haben hatte ich du er sie es wir ihr mein dein sein unser euer mit von zu zum zur bei
nach aus auf fur an im in am um uber unter vor durch wie was wer wo wann warum welche welcher welches kann
auch noch nur sich als wenn dass"""
FRENCH = """le la les l un une des du de d et ou mais ne pas est sont etait a ont avait je tu il elle nous
vous ils elles mon ton son notre votre leur ce cet cette ces qui que quoi dont quand comment pourquoi quel
quelle avec pour par dans sur sous en au aux y s se n c j m t qu"""
SPANISH = """el la los las un una unos unas y o pero no es son era fue ha han yo tu ella nosotros ellos mi su
nuestro este esta estos estas ese esa que quien cual cuando donde como por para con en de del al se lo le les
a mas muy"""
ITALIAN = """il lo la gli le un uno una e o ma non e sono era ha che chi cui quando dove come perche con per
in di del della da al alla si"""
PORTUGUESE = """o os as um uma uns umas e ou mas nao sao era foi ha que quem qual quando onde como por para
com em de do da dos das ao se"""
DUTCH = """de het een en of maar niet is zijn was waren heeft hebben ik jij hij zij wij mijn met van voor op
aan in uit bij naar wat wie waar wanneer hoe waarom welke dat dit die"""
RUSSIAN = """и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее мне было вот
от меня еще о из ему когда ли если или ни быть был него до вас нибудь уже вам ведь там потом себя ничего ей
может они где есть надо ней для мы их чем была сам чтоб без будто чего раз тоже себе под будет кто этот того
какой эта какая"""
ARABIC = """في من علي الي عن مع هذا هذه ذلك تلك الذي التي الذين هو هي هم انا نحن انت كان كانت يكون ما ماذا من
متي اين كيف لماذا هل لا لم لن قد كل بعض او و ثم ان اذا بين بعد قبل عند حتي كما غير اي"""

LANGUAGES = [
    frozenset(text.split())
    for text in (ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH, RUSSIAN, ARABIC)
]


def telling(words: list[str]) -> list[str]:
    """Return the words of a question without the stop words of the language that has most of them in it: a
    stop word in one language is a name in another. Return all words if none would be left."""
    silent = max(LANGUAGES, key=lambda language: sum(word in language for word in words))
    return [word for word in words if word not in silent] or words
