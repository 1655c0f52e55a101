"""What a voice is asked to say and a listener hears, by language: short, long, with numbers, with odd characters."""

from collections.abc import Mapping, Sequence

TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "short": "Good morning.",
        "sentence": "The harbour lay quiet before the storm.",
        "question": "Did she really write the address on that old envelope?",
        "numbers": "The train leaves at 9:45, costs $12.50 and arrives on the 3rd of May, says Dr. Smith.",
        "odd": "Café, naïve & co. (“quoted”) / 50% off… now!",
        "long": "The winter had begun early this year. A narrow path leads down to the bridge, where the "
        "children looked for snails in the summer. Our train was late, so we had coffee and counted our coins "
        "twice. Then we left.",
    },
    "de": {
        "short": "Guten Morgen.",
        "sentence": "Der Hafen lag still vor dem Sturm.",
        "question": "Hat sie die Adresse wirklich auf den alten Umschlag geschrieben?",
        "numbers": "Der Zug fährt um 9:45 Uhr, kostet 12,50 € und kommt am 3. Mai an, sagt Dr. Schmidt.",
        "odd": "Größe, Übermaß & Co. („zitiert“) / 50 % weniger… jetzt!",
        "long": "Der Winter hatte in diesem Jahr früh begonnen. Ein schmaler Weg führt hinab zur Brücke, an der die "
        "Kinder im Sommer nach Schnecken suchten. Unser Zug kam spät, also tranken wir Kaffee. Dann gingen wir.",
    },
    "fr": {
        "short": "Bonjour.",
        "sentence": "Le port était calme avant la tempête.",
        "question": "A-t-elle vraiment écrit l'adresse sur cette vieille enveloppe ?",
        "numbers": "Le train part à 9 h 45, coûte 12,50 € et arrive le 3 mai, dit le docteur Martin.",
        "odd": "Cœur, Noël & Cie (« cité ») / 50 % de moins… maintenant !",
        "long": "L'hiver avait commencé tôt cette année. Un sentier étroit descend vers le pont, où les enfants "
        "cherchaient des escargots. Notre train avait du retard, alors nous avons pris un café.",
    },
    "es": {
        "short": "Buenos días.",
        "sentence": "El puerto estaba tranquilo antes de la tormenta.",
        "question": "¿De verdad escribió la dirección en aquel sobre viejo?",
        "numbers": "El tren sale a las 9:45, cuesta 12,50 € y llega el 3 de mayo, dice el doctor Pérez.",
        "odd": "Pingüino, año & Cía. («citado») / 50 % menos… ¡ahora!",
        "long": "El invierno había empezado pronto este año. Un sendero estrecho baja hasta el puente, donde los niños "
        "buscaban caracoles en verano. Nuestro tren llegó tarde, así que tomamos café. Después nos fuimos.",
    },
}
"""Every language has the same names."""

FALLBACK = "en"
"""For a model of a language that has no texts here: its letters, at least, are spoken the same way each time."""


def languages_for(spoken: Sequence[str], most: int) -> list[str]:
    """The languages of a model that there are texts in, `most` of them; English where there is none."""
    return [language for language in TEXTS if language in spoken][:most] or [FALLBACK]
