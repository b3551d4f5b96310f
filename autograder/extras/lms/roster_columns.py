"""Titles of the columns of a roster, in lower case; of several, the first one that exists counts.

Canvas's, Gradescope's and Moodle's own tables can be rosters, too. Another language needs only its
titles here.
"""

# fmt: off
ID = (
    "sis login id", "sis user id", "id number", "sid", "student id", "username", "login", "id",
    "roster_identifier", "student",
)
# of a row without an id
OTHER_ID = ("email address", "email", "identifier", "github_username")
NAME = ("name", "student name")
FIRST = (
    "first name", "firstname", "given name", "given names", "forename", "vorname", "prénom",
    "nombre", "nome", "voornaam", "förnamn", "fornavn", "etunimi", "imię", "jméno", "křestní jméno",
    "keresztnév", "utónév", "ime", "prenume", "vardas", "izena", "adı", "ad", "имя", "ім'я", "ім’я",
    "όνομα", "الاسم الأول", "نام", "名", "이름", "tên", "nama depan", "nom",
)
LAST = (
    "last name", "lastname", "surname", "family name", "nachname", "familienname", "nom de famille",
    "apellido(s)", "apellidos", "apellido", "sobrenome", "apelido", "apelidos", "cognome",
    "cognoms", "achternaam", "efternamn", "etternavn", "efternavn", "sukunimi", "nazwisko",
    "příjmení", "vezetéknév", "családnév", "prezime", "priimek", "nume de familie", "pavardė",
    "abizena(k)", "soyadı", "soyad", "фамилия", "прізвище", "επώνυμο", "επίθετο", "الاسم الأخير",
    "اسم العائلة", "نام خانوادگی", "姓", "성", "họ", "nama belakang", "nume", "nom",
)
GROUP = ("group", "group name", "group_name", "gruppe")
# several groups in a cell, separated by commas
GROUPS = ("groups", "gruppen")
SECTION = ("section", "sections", "sektion")
