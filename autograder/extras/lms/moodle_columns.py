"""Titles of the columns of Moodle's grading worksheet; of several, the first one that exists counts.

The titles are those of Moodle's language packs, in the order English, German, Arabic, Basque,
Catalan, Chinese, Dutch, French, Galician, Greek, Indonesian, Italian, Japanese, Korean, Lithuanian,
Portuguese, Romanian, Russian, Spanish, Swedish, Turkish, Ukrainian, Urdu, Polish. Another language
needs only its titles here.
"""

# fmt: off
ID = (
    "Identifier", "ID", "المُعرَّف", "Identifikatzailea", "Identificador", "标识符", "識別碼",
    "Identificatie", "Identifiant", "Αναγνωριστικό", "Identificativo", "식별자", "Identifikatorius",
    "Identificator", "Идентификатор", "Identifierare", "Tanımlayıcı", "Ідентифікатор",
    "شناخت کنندہ", "Identyfikator",
)
# the word before a number, also in place of a name in anonymous downloads
PARTICIPANT = (
    "Participant", "Teilnehmer/in", "Teilnehmerin", "Teilnehmer*in", "المشارك", "Partaidea", "参与人",
    "参与者", "Deelnemer", "Participante", "Συμμετέχων", "Συμμετέχοντας", "Peserta", "Partecipante",
    "参加者", "참가자", "Dalyvis", "Участник", "Deltagare", "Katılımcı", "Учасник", "شریک", "Uczestnik",
)
NAME = (
    "Full name", "Vollständiger Name", "الاسم كاملا", "ًالاسم كاملا", "Izen osoa", "Nom complet",
    "全名", "Volledige naam", "Nome completo", "Πλήρες όνομα", "Nama lengkap", "Nome", "フルネーム",
    "전체 이름", "Visas pavadinimas", "Nume complet", "Полное имя", "Nombre completo",
    "Fullständigt namn", "Tam adı", "Повна назва", "Повне ім'я", "پورا نام", "Pełna nazwa",
)
ID_NUMBER = (
    "ID number", "ID-Nummer", "رقم المُعرَّف", "ID zenbakia", "Número ID", "学号", "Nummer (ID)",
    "Numéro d’identification", "Numéro d'identification", "Αναγνωριστικός αριθμός",
    "Codice identificativo", "IDナンバ", "id 번호", "ID numeris", "Número de identificação (ID)",
    "Număr ID", "Индивидуальный номер", "Número de ID", "ID nummer", "ID numarası",
    "Індивідуальний номер", "آئی ڈی نمبر", "Numer indeksu",
)
EMAIL = (
    "Email address", "E-Mail-Adresse", "عنوان البريد الإلكتروني", "Helbide elektronikoa",
    "Adreça electrònica", "电子邮件地址", "E-mailadres", "Adresse de courriel", "Enderezo de correo",
    "Διεύθυνση ηλε.ταχυδρομείου", "Alamat email", "Indirizzo email", "メールアドレス", "이메일 주소",
    "El. pašto adresas", "E-mail", "Endereço de email", "Adresa de e-mail",
    "Адрес электронной почты", "Dirección de correo", "E-postadress", "E-posta adresi",
    "Електронна пошта", "ای میل اڈریس",
)
USERNAME = (
    "Username", "Anmeldename", "اسم المستخدم", "Erabiltzaile-izena", "Nom d'usuari", "用户名",
    "Gebruikersnaam", "Nom d’utilisateur", "Nom d'utilisateur", "Nome de usuario", "Όνομα χρήστη",
    "ユーザ名", "사용자 아이디", "Naudotojo vardas", "Nome de utilizador", "Nume de utilizator", "Логин",
    "Nombre de usuario", "Användarnamn", "Kullanıcı adı", "Ім’я входу", "صارف نام",
)
GRADE = (
    "Grade", "Bewertung", "الدرجة", "Kalifikazioa", "Qualificació", "成绩", "Cijfer", "Note",
    "Cualificación", "Βαθμός", "Nilai", "Valutazione", "評点", "성적", "Įvertinimas", "Nota",
    "Avaliação", "Notă", "Оценка", "Calificación", "Betyg", "Not", "Оцінка", "درجہ", "Ocena",
)
MAXIMUM = (
    "Maximum grade", "Bestwertung", "أعلى تقدير", "Gehieneko kalifikazioa", "Qualificació màxima",
    "最高分", "Maximaal cijfer", "Note maximale", "Cualificación máxima", "Μέγιστος Βαθμός",
    "Nilai maksimum", "Valutazione massima", "最大評点", "최대 성적", "Didžiausias įvertinimas",
    "Nota máxima", "Notă maximă", "Максимальная оценка", "Calificación máxima", "Maxbetyg",
    "Enyüksek not", "En yüksek not", "Максимальна оцінка", "زیادہ سے زیادہ گریڈ",
    "Maksymalna ocena",
)
CHANGEABLE = (
    "Grade can be changed", "Bewertung kann geändert werden", "يمكن تغيير الدرجة",
    "Kalifikazioa alda daiteke", "Es pot canviar la qualificació", "允许更改成绩",
    "Het cijfer kan gewijzigd worden", "La note peut être modifiée",
    "A cualificación pode seren cambiada", "Ο βαθμός μπορεί να αλλάξει", "Nilai dapat diubah",
    "La valutazione può essere cambiata", "評点変更可", "Įvertinimas gali būti pakeistas",
    "A nota pode ser alterada.", "Nota pode ser alterada", "Nota poate fi schimbată",
    "Оценка может быть изменена", "La calificación puede ser cambiada", "Betyg kan ändras",
    "Not değiştirilebilir", "Оцінка може бути змінена", "گریڈ تبدیل کیا جا سکتا ہے",
)
# in the column CHANGEABLE
NEGATIVE = (
    "No", "Nein", "لا", "Ez", "否", "Nee", "Non", "Όχι", "Tidak", "아니오", "Ne", "Não", "Nu", "Нет",
    "Nej", "Hayır", "Ні", "نہیں",
)
COMMENT = (
    "Feedback comments", "Feedback als Kommentar", "تعليقات الإفادة", "Feedback-iruzkinak",
    "Comentaris de retroacció.", "反馈意见", "Feedback tekstvak", "Feedback par commentaires",
    "Comentarios", "Σχόλια ανατροφοδότησης", "Commenti", "フィードバックコメント", "피드백 코멘트",
    "Grįžtamojo ryšio komentarai", "Comentários de feedback", "Comentarii de feedback",
    "Отзыв в виде комментария", "Comentarios de retroalimentación", "Återkopplingskommentarer",
    "Geri bildirim yorumları", "Відгук - коментарем", "تاثرات کے تبصرے", "Komentarz zwrotny",
)
