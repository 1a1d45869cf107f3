"""What a column's name says: other people, what tells people or rows apart, free text, time, an amount.

The last word of a name is what the column holds (`phone_brand` is a brand, `note_count` a number), once words for keys
are taken off (`driver_id` is a driver).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from dp_service.terms import ColumnType

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Nouns for people that a table's member may have.
_PEOPLE = _words(
    "member user customer client person subscriber visitor employee student passenger author account "
    "buyer reader viewer player guest citizen household profile rider driver donor learner resident tenant worker"
) | _words(
    "kunde kunden mitarbeiter nutzer benutzer utilisateur cliente usuario utente klant gebruiker paciente "
    "paziente"
)
# Nouns for people beside the member.
_OTHERS = _words(
    "barber sitter groomer notary juror captain pupil mate buddy kid waiter uploader teammate crew csm drawer "
    "arzt aerztin bearbeiter sachbearbeiter berater betreuer fahrer kassierer lehrer schueler verkaeufer verkaufer "
    "caissier conducteur docteur employe medecin vendeur cajero conductor empleado medico vendedor autista cassiere "
    "dipendente impiegato venditore funcionario motorista bestuurder medewerker verkoper "
    "agent anaesthetist analyst apprentice approver assignee attendee auditor aunt author babysitter "
    "barista bcc beneficiary borrower boss bride brother caller candidate caregiver carer cashier cc "
    "chauffeur child claimant clerk coach colleague consultant contact contractor counterpart "
    "counterparty courier cousin coworker creator dad dasher daughter defendant deliverer dentist "
    "director dispatcher doctor donor editor engineer examiner father fiance followee follower following "
    "friend godparent gp grader grandfather grandmother grandparent groom guardian handler head helper "
    "host husband informant inspector installer instructor interviewee interviewer invited invitee "
    "inviter judge kin landlord lawyer lead leader lecturer lender manager marker matchmaker mentee "
    "mention mentioned mentor merchandiser midwife moderator mother mum neighbor neighbour nephew niece "
    "nurse officer operator opponent organiser organizer owner packer parent participant partner payee "
    "payer peer physician picker pilot plaintiff poster practitioner prescriber presenter principal "
    "professor provider psychologist receiver recipient referee referrer relative rep reporter "
    "representative requester requestor reviewer roommate salesman salesperson scorer seller sender "
    "shopper sibling signatory sister son speaker sponsor spouse staff student stylist supervisor "
    "supporter surgeon teacher technician teller therapist trainee trainer tutor uncle vet wife witness "
    "writer"
)
# A country of citizens is a kind of them; a country's manager is a person.
_KINDS = _words("country region state gender category segment type")
# Such a noun alone may also be a program, a site or a firm: contents decide.
_MAYBE_PEOPLE = _words("agent client host referrer account provider source lead head")
_NAMES = _words("name nom nombre nome naam")
_KEYS = _NAMES | _words(
    "id ids uid uuid guid key no nr number num hash code pk fk ref names email mail nummer numero"
)
_KEYS_OF_MEMBERS = _words("id uid uuid guid key no nr number num hash code pk nummer numero")
# What is done *by* these is no person; every other `.._by` is.
_NOT_BY = _words(
    "sorted sort ordered order grouped group powered filtered filter partitioned split divided limited stand"
)
_GIVEN_TO = _words(
    "assigned reassigned escalated forwarded delegated reply replied reports addressed transferred"
)
# People by their own names, or near enough to find one.
_PERSONAL = _words(
    "aadhaar aaid address advertising bic birth birthdate birthday bsn cnpj coordinates cpf cpr curp dni "
    "dob email fax fingerprint firstname fullname gaid geohash geolocation gps handle hostname hwid iban "
    "idfa imei imsi initials ip ipaddr ipaddress lastname lat latitude latlng lng login lon longitude mac "
    "mail mobile mrn msisdn nhs nickname nie nino nric passport password pesel phone plate secret "
    "signature ssid ssn street surname swift tel telephone token udid username vin wallet "
    "adid avatar gamertag nin photo geburtsdatum geburtstag hausnummer nachname strasse vorname courriel naissance "
    "prenom rue apellido apellidos calle correo nacimiento telefono cognome nascita nascimento rua sobrenome telefone "
    "achternaam geboortedatum huisnummer straat telefoon voornaam telefon"
)
_BIRTH = _words("birth birthday birthdate bday born geburt geburts geboorte")
_NAME_OF = _words(
    "first last full user customer member client person employee given family middle nick maiden screen"
) | {"patient"}
_WITH_KEY = _words(
    "access account android api card case certificate contract document driving health insurance licence "
    "license meter national policy private public remote serial social subscriber tax tracking vat visitor"
)
# What each row, or a few rows of one member, have to themselves.
_EVENTS = _words(
    "admission appointment awb basket booking call cart case checkout claim conversation "
    "correlation delivery docket enrollment enrolment event invoice job log message order parcel payment "
    "po receipt record request reservation ride rma row run session shipment span thread ticket trace "
    "transaction trip txn visit"
)
_ROW_KEYS = _KEYS_OF_MEMBERS | {"reference", "ref"}
_LONE_IDS = ({"id"}, {"uuid"}, {"guid"}, {"pk"}, {"rowid"}, {"hash"})
# As names they are identifiers, and contents may say otherwise: `device` may be a phone's number or one of three kinds.
_MAYBE_IDS = _words(
    "device cookie session installation zip zipcode postcode mobile phone address plz postleitzahl postal cep adresse "
    "direccion indirizzo endereco adres"
)
_FREE_TEXT = _words(
    "comment comments note notes message remark remarks body text description feedback review subject memo bio "
    "biography summary transcript content caption answer excuse "
    "bemerkung kommentar notiz commentaire remarque comentario observacion observacao commento nota opmerking notitie"
)
# An integer with such a name is likely to count time since 1970; a name like eventTime has two words of it.
_CLOCK = _words("ts timestamp epoch unixtime datetime millis")
_CLOCK_OF = _words("time at")
_HAPPENED = _words(
    "event created updated modified started start ended end received sent seen clicked click bought ordered paid rated "
    "arrived recorded logged happened occurred inserted server client utc unix visited posted played watched opened"
)
_LATER = _words(
    "updated modified ended end closed deleted delivered shipped discharged expires expired expiry due until last "
    "completed finished resolved returned cancelled canceled arrived inserted ingested loaded processed received birth "
    "signup registered joined since"
)
_UNITS = {
    word: unit
    for unit, words in (
        ("seconds", "s sec secs seconds"),
        ("milliseconds", "ms millis milliseconds"),
        ("microseconds", "us micros microseconds"),
    )
    for word in words.split()
}
_CALENDAR = _words("year month week day weekday hour minute quarter dow doy date version")
# What is one number of a time or a thing, and no part of a sum.
_MARKS = _words(
    "rating ratings score scores grade grades mark marks stars star level percent percentage share rate ratio age rank "
    "temperature latency ping battery satisfaction probability confidence speed"
)
_AMOUNTS = _words(
    "amount amounts price cost costs revenue total spend spent sales value fare tip tips fee fees payment paid income "
    "quantity qty units pieces count clicks views bytes minutes hours seconds points"
)
_SIZES = _words(
    "cents pence duration distance length width height weight size volume balance discount salary stock"
)
_DIRECTIONS = _words("by to for from with")


class Kind(Enum):
    """Why a column is left out."""

    OTHER_PEOPLE = "other people"
    IDENTIFIER = "identifier"
    FREE_TEXT = "free text"
    TIME = "time"


@dataclass(frozen=True)
class Finding:
    """Why a column is left out, in words; `is_open`: contents that many members share say otherwise."""

    kind: Kind
    reason: str
    is_open: bool = False


_OF_PEOPLE = "its name says that it stands for people too, and only one column is the member"
_TELLS_APART = "its name says that it tells people apart"
_OF_ROWS = (
    "its name says that one member alone has each value: nothing could be shown, and every question costs"
)
_WRITTEN = "its name says that it is free text, which hardly two members share"


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name, in small letters: of `userId` and `user_id` they are the same."""
    return tuple(word.lower() for word in _WORDS.findall(name))


def is_person(name: str) -> bool:
    """Return whether a name says that a column holds people: a noun for them, alone or with a word for a key."""
    joined = name.lower().replace("_", "")
    if any(joined == person + key for person in _PEOPLE for key in ("id", "uid", "key")) or joined == "uid":
        return True
    words = frozenset(words_of(name))
    return bool(words & _PEOPLE) and words <= _PEOPLE | _KEYS_OF_MEMBERS


def finding_of_name(name: str, kind: ColumnType | None) -> Finding | None:
    """Return why a column should be left out by its name alone, None if it says nothing of the kind."""
    words = words_of(name)
    known = frozenset(words)
    head = _head(words)
    if _is_of_people(name, words, head, kind):
        # An id of an agent is somebody's; an agent alone may be a program.
        return Finding(Kind.OTHER_PEOPLE, _OF_PEOPLE, words[-1] in _MAYBE_PEOPLE and len(words) == 1)
    if _tells_apart(known, head) or (kind in (ColumnType.DATE, ColumnType.TIMESTAMP) and known & _BIRTH):
        return Finding(Kind.IDENTIFIER, _TELLS_APART, head in _MAYBE_IDS)
    if known in _LONE_IDS or (known & _EVENTS and words[-1] in _ROW_KEYS):
        return Finding(Kind.IDENTIFIER, _OF_ROWS, is_open=True)
    if head in _MAYBE_IDS:
        return Finding(Kind.IDENTIFIER, _TELLS_APART, is_open=True)
    if words and words[-1] in _FREE_TEXT and kind in (ColumnType.STRING, None):
        return Finding(Kind.FREE_TEXT, _WRITTEN, is_open=True)
    return None


def _head(words: tuple[str, ...]) -> str:
    """Return what a column holds: the last word that is none for a key."""
    left = [word for word in words if word not in _KEYS or word in ("email", "mail", "hash")]
    while (
        len(left) > 1 and left[-1] in ("hash", "email", "mail") and left[-2] in _PEOPLE | _OTHERS | _PERSONAL
    ):
        left.pop()
    return left[-1] if left else ""


def _is_of_people(name: str, words: tuple[str, ...], head: str, kind: ColumnType | None) -> bool:
    if is_person(name):
        return True
    if "by" in words[1:]:
        if words[words.index("by", 1) - 1] in _NOT_BY:
            return False
        if words[-1] in _KEYS | {"by"} | _PEOPLE:
            return True
    if "to" in words[1:] and words[words.index("to", 1) - 1] in _GIVEN_TO:
        return True
    if words[-2:] == ("user", "agent") or (len(words) == 2 and words[0] in _KINDS and words[1] in _PEOPLE):
        return False
    # `passengers` in integers are how many there were.
    plural = "" if kind in (ColumnType.INT64, None) and not _KEYS & set(words) else head.removesuffix("s")
    return not {head, plural}.isdisjoint((_PEOPLE | _OTHERS) - {"account", "profile", "household"} - {""})


def _tells_apart(words: frozenset[str], head: str) -> bool:
    if head in _PERSONAL - _MAYBE_IDS or words <= _NAMES or ("name" in words and words & _NAME_OF):
        return True
    is_key = bool(words & _KEYS_OF_MEMBERS)
    if is_key and words & (_WITH_KEY | _PERSONAL):
        return True
    if words >= {"card", "last"} or words >= {"birth", "date"}:
        return True
    return head == "address" and len(words) > 1


def is_key(name: str) -> bool:
    """Return whether a name says that a number is a key, or a place in the calendar: nothing that adds up."""
    words = frozenset(words_of(name))
    return bool(words & (_KEYS | _CALENDAR)) and "count" not in words


def adds_up(name: str, *, is_integer: bool) -> bool:
    """Return whether the numbers of a member are added up, as amounts and counts are, and not averaged as marks are."""
    words = words_of(name)
    return _MARKS.isdisjoint(words) and (is_integer or not _AMOUNTS.isdisjoint(words))


def is_amount(name: str) -> bool:
    """Return whether a name says that numbers are how much or when, and stand for nobody: not that of who is paid."""
    words = frozenset(words_of(name))
    return bool(words & (_AMOUNTS | _MARKS | _SIZES | _CALENDAR)) and not words & (_KEYS | _DIRECTIONS)


def is_clock(name: str) -> bool:
    """Return whether the name of a column of integers says that they count time since 1970."""
    words = frozenset(words_of(name))
    joined = name.lower().replace("_", "")
    happened = bool(words & (_CLOCK_OF | _UNITS.keys()) and words & _HAPPENED) or joined in (
        "time",
        "eventtime",
    )
    return bool(words & _CLOCK) or happened


def clock_unit(name: str) -> str:
    """Return the unit that a name says, empty if it says none."""
    units = [_UNITS[word] for word in sorted(frozenset(words_of(name)) & _UNITS.keys())]
    return units[0] if units else ""


def is_later(name: str) -> bool:
    """Return whether a name says that a time is of something after the row's own event, such as its end."""
    return not _LATER.isdisjoint(words_of(name))
