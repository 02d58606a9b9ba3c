# ruff: noqa: E501  (a table of words)
"""The words that instructions to a reader are made of, and the orders in which they make one.

A text becomes a *line of concepts*: one letter for each of its words (`O` for ignore, `P` for previous, `.` for a word that
means nothing here, `|` where a sentence ends), in which the rules are short patterns with bounded gaps. So the rules hold
for every language in the lexicon, cost the same for every text, and never look at the text's own length. Pure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from amem.policy.scan_text import odd_characters, plain, unleet

_LEXICON: dict[str, str] = {
    # O: take no notice of
    "O": """ignore ignoring disregard disregarding forget forgetting neglect overlook dismiss discard unlearn
        ignora ignorad ignoren ignorez ignorer ignorar ignorare ignorate ignoriere ignoriert ignorieren ignorier negeer negeren ignorera ignorer
        ignoruj ignoruje ignorujcie zignoruj ignoreaza ignorati ignoruj ignorujte ignorirajte ignorisi abaikan hiraukan lupakan huwag_pansinin balewalain
        oublie oubliez oublier neglige negligez olvida olvidad olvide olviden olvidate olvidar descarta descarte omite haz_caso esqueca esquecam esquecer desconsidere desconsiderar
        geen_rekening plus_compte pas_compte caso_omiso fais_abstraction faites_abstraction uyma uymayin
        vergiss vergesst vergessen missachte missachten vergeet dimentica dimenticate dimenticare trascura tralascia zapomnij pomin lekcewaz
        игнорируй* игнорирова* проигнорируй* забудь* забыть отбрось* пренебреги* ігноруй* проігноруй* забудьте забудь
        unut* yoksay* yok_say goz_ardi gormezden bo_qua quen phot_lo glom bortse glem uita ignora zapomen zapomente nezohledn*""",
    # V: get around, make void
    "V": """override overriding bypass bypassing circumvent circumventing disable evade sidestep violate break disobey supersede supersedes skip nullify
        contourne contournez contourner outrepasse* umgehe umgeht umgehen ubergehe uberschreib* aggira aggirate anula anular elude eludir burla contorne contornar omija* omin obejd*
        обойди* обходи* отключи* нарушь* обійди* atla* omzeil* kringga* langgar vo_hieu""",
    # P: what came before
    "P": """previous previously prior preceding earlier above foregoing former past existing original initial before beforehand preceeding
        precedent* precedant* anterieur* ci_dessus dessus avant anterior* previ* precedente* sopra prima originali vorherig* vorig* bisherig* vorangegangen* obig* fruher* zuvor
        vorige voorgaande eerdere bovenstaande tidigare ovan foregaende tidligere forrige ovennevnte poprzedn* wczesniejsz* powyzsz* dotychczasow*
        предыдущ* прежн* предшествующ* ранее выше вышеуказанн* вышеизложенн* попередн* раніше вище
        onceki* yukaridaki* daha_once sebelumnya terdahulu diatas truoc tren nauna naunang anterioare precedente predchozi* predesl* korabbi* edelli* aiempi* aiemm*""",
    # A: all of it
    "A": """all any every each entire whole toutes tous alle allen saemtliche samtliche todas todos toda tutte tutti cualquier
        wszystkie wszystkich wszystko всех всю всі усі tum butun hepsini semua segala seluruh tat_ca moi lahat toate alla alt vsechny vsechna minden kaikki ola""",
    # S: everything
    "S": "everything anything alles tout todo tudo tutto все всё wszystko hepsini semuanya",
    # Y: the reader's
    "Y": """your yours ur votre vos tes ta ton tus tu sus su vuestras vuestro seus suas seu sua teus tuas deine deinen deiner deines deinem ihre ihren uw jouw je tue tuoi tuo vostre
        twoje twoich twoj swoj swoje swoich свои своих твои ваши ваших твой твоих твої ваші senin sizin anda kamu cua_ban ban iyong inyong ale_tale din dina ditt dine""",
    # U: the reader
    "U": "you u vous toi usted ustedes voce voces du sie tu jij ty вы ты ви sen siz anda kamu",
    # I: what a reader was told to do
    "I": """instruction instructions directive directives guideline guidelines intructions instuctions instrucions instrutions consigne consignes directives instrucciones instruccion directrices indicaciones
        instrucoes instrucao diretrizes orientacoes anweisung anweisungen instruktion instruktionen richtlinien vorgaben anweisugen istruzioni istruzione direttive indicazioni
        instructies instructie richtlijnen aanwijzingen instruktioner instruksjoner anvisningar instrukcj* wytyczn* polecen* инструкц* указани* директив* інструкц* вказівк*
        talimat* yonerge* instruksi petunjuk arahan huong_dan chi_dan chi_thi tagubilin panuto instructiuni instructiunile pokyny instrukce utasitas* ohje* odigies""",
    # M: prompt
    "M": "prompt prompts systemanweisungen systemanweisung systemprompts systemprompt preprompt metaprompt invite systemaufforderung systeemprompt промпт* prompta promptu promptunu promptul",
    # R: rules, of whatever kind
    "R": """rule rules policy policies restriction restrictions constraint constraints orders commands programming training protocols safeguards guardrail guardrails limitations
        regles regle politique politiques restrictions contraintes ordres reglas normas politicas restricciones ordenes comandos regras restricoes comandos regeln regel befehle beschrankungen
        regole regola restrizioni comandi ordini regels beperkingen opdrachten regler reglerna zasad* regul* ograniczen* правил* ограничени* команд* правил* обмежен* наказ*
        kural* komut* kisitlama* aturan perintah batasan quy_tac quy_dinh lenh patakaran utos reguli regulile pravidl* omezen* szabaly* saanno*""",
    # z: what holds a model back
    "z": "restriction restrictions filter filters limitations limits censorship guardrail guardrails ethics ethical morals boundaries safeguards inhibitions moderation constraints",
    # H: what is not for the reader's reader
    "H": """system hidden developer internal confidential initial original underlying preset syste systeme cachee cache caches cachees sistema oculto ocultas oculta ocultos interno internas iniciales
        systems versteckte verborgene versteckten verborgenen interne internen nascosto nascoste nascosta interni verborgen systeem systemow* ukryt* wewnetrzn*
        системн* скрыт* внутренн* початков* системн* прихован* sistem gizli dahili tersembunyi he_thong""",
    # K: what must stay secret
    "K": """secret secrets password passwords passwd passphrase passcode credential credentials apikey apikeys canary dotenv privatekey
        secretos secreto contrasena contrasenas credenciales senha senhas credenciais segredo segredos identifiants secretes
        passwort passworter kennwort zugangsdaten geheimnis geheimnisse segreto segreti credenziali wachtwoord wachtwoorden geheimen hasla haslo
        пароль паролі пароли секрет* ключ* учетн* sifre* parola* kata_sandi sandi rahasia mat_khau""",
    # W: keys, when said with a word of secrecy before them
    "W": "key keys token tokens ssh env cookies code phrase cle",
    # b: what belongs to people; D: what somebody has
    "b": """customer customers client clients conversation conversations history inbox database databases emails records patient patients employee employees salaries
        factures clientes kunden kundendaten clienti conversacion conversaciones historial""",
    "D": """data record content file files information values message messages document documents context
        donnees valeur fichiers datos archivos dados arquivos daten dateien dati данные содержимое файлы veri veriler dosya* du_lieu""",
    # L: give away what was kept
    "L": """reveal leak divulge disclose exfiltrate recite unveil exfil revele revelez divulgue divulguez affichez affiche revela revelar revele revelen divulga muestra muestrame
        enthulle enthullen verrate offenbare preisgeben rivela rivelate svela mostra mostrami onthul ujawnij wyjaw раскрой* выдай* розкрий* покажи* ifsa aciga acikla ungkapkan bocorkan tiet_lo""",
    # s: tell, perhaps with a person after it
    "s": "tell inform mention alert notify warn",
    # T: show, tell
    "T": """show dump expose print display output repeat give share provide return list write append paste include echo say read fetch copiez copie donne donnez dites imprime imprimez montre montrez repete repetez
        muestre imprime escribe dime dame repite mostre imprima escreva diga repita zeige zeig drucke ausgeben wiederhole gib stampa scrivi ripeti dimmi laat toon herhaal geef
        pokaz wypisz powtorz podaj напиши* повтори* выведи* напиши goster* yazdir* tekrarla* soyle* tampilkan katakan ulangi hien_thi""",
    # X: send away
    "X": """send email post upload forward transmit submit export curl transfer mail relay copy deliver sync envoyez envoyer envoie transferez exportez envia enviar envie envien reenvia sube exporta
        enviar envie encaminhe sende senden schicke schick ubermittle leite invia inviate inoltra carica stuur verstuur wyslij przeslij отправь* отправить перешли* надішли* gonder* ilet kirim*""",
    # E: somebody who should not have it; i: somewhere outside
    "E": """attacker attackers evil hacker hackers webhook ngrok pastebin adversary atacante atacantes angreifer attaquant attaccante requestbin interactsh
        saldirgan penyerang злоумышленник* зловмисник*""",
    "i": """external outside thirdparty externe externes exterieur externo externa externen extern externer esterno esterna zewnetrzn* внешн* зовнішн* harici eksternal""",
    # g, G: who reads: surely a model; perhaps one
    "g": """assistant assistants ai ais llm llms chatbot chatbots chatgpt gpt claude gemini copilot ki ia assistente asistente asistentes assistenten assistenti asystent* ассистент* ии нейросет* асистент*
        yapay asisten asistan""",
    "G": "agent agents bot bots agentes agenten agenti агент*",
    "l": "model models modelo modele modell",
    # v: must
    "v": "must should shall will doit doivent devez debe deben debes deve devem devono muss mussen musst soll sollen moet moeten musi musisz должен должны должна повинен malisin gerekir harus phai",
    # N: not
    "N": "nichts niets rien nada niente ничего not no never dont doesnt cannot without avoid cant wont shouldnt mustnt neither nor nicht kein keine ne pas sans nunca jamais sin sem senza non nao nie не нет без без ні degil jangan tidak khong",
    # F: follow
    "F": "follow obey comply adhere heed listen observe hagas_caso hagan_caso haga_caso tenere_conto tener_conto tenete_conto beachte beachtet stosuj* przestrzegaj suis suivez suivre sigas seguir seguire siga befolge befolgen folge przestrzegaj следуй* следова* выполняй*",
    # k: were told
    "k": "told given discussed besprochen discute instructed taught said learned learnt programmed trained dit dito appris dicho dijeron aprendido gesagt gelernt detto imparato сказано говорили говорил",
    # J: play a part
    "J": "act pretend roleplay simulate imagine behave impersonate become enact emulate",
    # Z: a part with nothing to hold it back
    "Z": "unrestricted jailbroken jailbreak uncensored unfiltered amoral unethical unbound lawless omnipotent godmode unchained",
    # 5: answer; 6: what was just named
    "5": "respond answer reply comply proceed antworte responde repondez rispondi",
    "6": "them it those",
    "n": "now henceforth jetzt sofort ahora maintenant desormais adesso agora теперь",
    "m": "mode persona character role",
    # s: tell, with a person after it
    # 1: tell, in other languages than English; 2: a person who uses the model, in these
    "1": "sag sage sagt sagen erzahl erzahle parle parlez dis dites digas digan dirlo dica dicas conte contes contem говори* скажи* сообща* сообщи* mow powiedz vertel zeg soyleme*",
    "2": "benutzer nutzer anwender utilisateur utilisateurs usuario usuarios utente utenti пользовател* користувач* kullanici* uzytkownik* gebruiker gebruikers bruker anvandaren",
    "w": "what whats which",
    "a": "admin admins administrator administrators root superuser trusted authorized authorised whitelisted exempt",
    "u": "user users human humans operator operators owner anyone anybody person people",
    "d": "do don dont never please",
    "B": "approve authorize authorise autoapprove preapprove confirm accept",
    "C": "approval approvals confirmation authorization authorisation permission permissions consent review oversight",
    "Q": "tool tools call calls invocation invocations",
    "x": "next pending outstanding",
    "t": "tenant tenants locataire locataires inquilino inquilinos mandant mandanten mieter",
    "f": "fetch access retrieve load query open get pull accedez acceder accede acceda zugreifen rufe",
    "o": "another other others different autre autres otro otra anderer anderen anderes altro",
    "r": "remember memorize memorise store save persist retain record recuerda merke ricorda souviens retenez lembre запомни*",
    "p": "permanently forever always future indefinitely persistently siempre immer toujours permanentemente sempre всегда навсегда",
    "y": "attention dear achtung atencion attenzione внимание",
    "q": "to",
    "e": "reading reads processing processes parsing ingesting ingests retrieving retrieves summarizing seeing receiving receives",
    "h": "this these following here",
    "j": "if as since when because",
    "c": "contents content contenu inhalt contenido",
}  # fmt: skip
"""Words by concept: `word` is the word, `stem*` every word that begins so, `two_words` the two beside each other.
A word of two concepts has the first that lists it."""

_UNSPACED: dict[str, str] = {
    "O": """忽略 忽视 无视 無視 忘记 忘掉 忘記 忽視 不要理会 不要理會 无须理会 抛弃 无需遵守 無視し 無視して 忘れて 忘れろ 従わない 무시 잊어 잊고 잊으 اتجاهل تجاهل انس اهمل تجاهلوا نادیده فراموش
        תתעלם התעלם התעלמו שכח अनदेखा नजरअंदाज भूल उपेक्षा ละเว้น เพิกเฉย ไม่ต้องสนใจ ลืม উপেক্ষা αγνοησε ξεχασε αγνοηστε""",
    "P": "之前 以前 先前 以上 上述 上面 前面 此前 原先 前の 以前の これまで 上記 上の 先ほど 이전 앞선 위의 기존 السابقة سابقة السابق أعلاه اعلاه قبلی پیشین הקודמות הקודמת לעיל पिछले पिछली पूर्व उपरोक्त ก่อนหน้า ข้างต้น เดิม পূর্ববর্তী προηγουμεν",
    "A": "所有 全部 一切 任何 すべて 全て 全部の あらゆる 모든 전부 جميع كل كافة تمام همه כל सभी सारे सब ทั้งหมด ทุก সমস্ত ολες ολα",
    "I": "指令 指示 说明 說明 命令 提示词 指引 指導 命令を インストラクション 지시 지침 명령 설명 تعليمات التعليمات الأوامر الاوامر أوامر تعلیمات دستورالعمل دستورات הוראות ההוראות הנחיות निर्देश आदेश अनुदेश คำสั่ง คำแนะนำ নির্দেশ οδηγιες εντολες",
    "R": "规则 規則 规定 限制 约束 政策 ルール 制限 規約 규칙 제한 규정 قواعد القواعد القيود قوانین כללים נियम नियम नियमों กฎ ข้อจำกัด κανονες",
    "M": "提示 プロンプト 프롬프트 موجه المطالبة פרומפט प्रॉम्प्ट พรอมต์",
    "H": "系统 系統 隐藏 隱藏 内部 システム 隠し 시스템 숨겨진 내부 النظام نظام سیستم מערכת सिस्टम प्रणाली ระบบ συστηματος",
    "L": "透露 泄露 洩露 揭示 显示 顯示 輸出 输出 暴露 公开 打印 告诉我 告訴我 教えて 表示 明かし 出力 漏らし 공개 알려 출력 보여 누설 اكشف أظهر اظهر اعرض افصح فاش نشان גלה חשוף הצג प्रकट दिखाओ बताओ दिखाएं बताएं เปิดเผย แสดง ফাঁস αποκαλυψε",
    "K": "密码 密碼 密钥 密鑰 凭证 憑證 机密 機密 秘密 口令 パスワード 秘密鍵 認証情報 資格情報 機密情報 비밀번호 암호 비밀 자격 كلمة المرور كلمات المرور السر سر رمز رمز عبور סיסמה סיסמאות पासवर्ड गुप्त รหัสผ่าน ความลับ",
    "X": "发送 發送 发到 上传 上傳 转发 送信 送って 転送 アップロード 보내 전송 업로드 أرسل ارسل إرسال ارسال שלח भेज ส่ง",
    "E": "攻击者 攻擊者 外部 黑客 外部の 攻撃者 외부 공격자 خارجي المهاجم خارجی חיצוני תוקף बाहरी ภายนอก",
    "D": "数据 數據 文件 内容 记录 資料 データ ファイル 데이터 파일 بيانات البيانات ملف داده נתונים डेटा ข้อมูล",
}
"""Words of scripts without spaces, or whose words take on letters: looked for anywhere, as they stand."""


def _g(most: int) -> str:
    """At most so many words between, within one sentence."""
    return f"[^|]{{0,{most}}}"


_OVER = "(?:O|N.?F)"
_KEPT = "(?<!N.)(?<!N..)"
"""Not said of what is not to be done; behind the first concept, so that a search passes over the others."""


class Rule(NamedTuple):
    """A pattern over a line of concepts, and the class of what it finds."""

    cls: str
    needs: str
    """Groups of concepts: without one of each the pattern cannot hold."""
    pattern: str


RULES = (
    # Take no notice of what you were told.
    Rule("instruction", "NO PY IMR", f"{_OVER}{_g(4)}[PY]{_g(3)}[IMR]"),
    Rule("instruction", "NO AS IM", f"{_OVER}{_g(4)}[AS]{_g(3)}[IM]"),
    Rule("instruction", "NO IMR P", f"{_OVER}{_g(3)}[IMR]{_g(2)}P"),
    Rule("instruction", "NO H IM", f"{_OVER}{_g(2)}H{_g(1)}[IM]"),
    Rule("instruction", "APSY IM O", f"[PYAS]{_g(3)}[IM]{_g(4)}O"),
    Rule("instruction", "PY R O", f"[PY]{_g(3)}R{_g(3)}O"),
    Rule("instruction", "O ASw k", f"O{_g(3)}[ASw]{_g(4)}k"),
    Rule("instruction", "O APS", "O.?A.?P(?=[|]|$)|O.?S.{0,2}P|O.{0,2}P[.][Ts]"),
    Rule("instruction", "V PY IM", f"V{_g(2)}[YP]{_g(2)}[IM]"),
    Rule("instruction", "V Y Rz", f"V{_g(2)}Y{_g(2)}[zR]"),
    Rule("instruction", "g v OV ACIMPRYk", f"g.?v.{{0,2}}[OV]{_g(4)}[IMRPAYkC]"),
    Rule("instruction", "g v LX DIKMb", f"g.?v.{{0,3}}[XL]{_g(3)}[DbKMI]"),
    # Give away what is kept.
    Rule("instruction", "L HKPY IM", f"L{_KEPT}{_g(3)}[YHPK]{_g(2)}[MI]"),
    Rule("instruction", "L M", f"L{_KEPT}.?.?M"),
    Rule("instruction", "1TXs Y M", f"[TsX]{_KEPT}{_g(2)}Y{_g(1)}[HP]?{_g(1)}M"),
    Rule("instruction", "1TXs Y HKP IR", f"[TsX]{_KEPT}{_g(2)}Y{_g(1)}[HPK]{_g(1)}[IR]"),
    Rule("instruction", "w Y HKP", "w.?Y.?(?:[HP].?[MIR]|K)"),
    Rule("instruction", "L K", r"L(?<![Nv].)(?<!N..)[.]?[aYASHWDb]{0,2}K"),
    Rule("instruction", "HY IM L", f"[YH]{_g(2)}[MI]{_g(2)}L"),
    Rule("instruction", "X KW E", f"X{_KEPT}{_g(6)}[KW]{_g(7)}E"),
    Rule("instruction", "X K i", f"X{_KEPT}{_g(6)}K{_g(7)}i"),
    Rule("instruction", "X b Ei", f"X{_KEPT}{_g(6)}b{_g(5)}[Ei]"),
    Rule("instruction", "1LT DKb X E", f"[TL]{_KEPT}{_g(5)}[KbD]{_g(6)}X{_g(5)}E"),
    Rule("instruction", "X E Kb", f"X{_KEPT}{_g(2)}E{_g(5)}[Kb]"),
    Rule("instruction", "X c K", "X.?c.?.?K"),
    Rule("instruction", "K X E", f"K{_g(3)}X{_g(5)}E"),
    Rule("instruction", "1LTs I U k", "[TsL].{0,4}I.?U.{0,2}k"),
    Rule("instruction", "DKWb X 6 E", "[KbWD][^|]{0,5}X6.{0,3}E"),
    Rule("instruction", "O AS R U", "O.{0,3}[AS].{0,3}R[^|]{0,5}U"),
    Rule("instruction", "Y I V", "Y.{0,2}I.?V"),
    # Be somebody without bounds.
    Rule("instruction", "Un", "n[^|]{0,4}U[^|]{0,8}N.{0,2}[Rz]|U.n[^|]{0,8}N.{0,2}[Rz]"),
    Rule("instruction", "5 NU", "5.{0,5}N.?z|5.{0,5}U.{0,3}N.?z"),
    Rule("instruction", "m O R", "m.{0,4}O[^|]{0,4}R"),
    Rule("instruction", "m N Rz", f"m{_g(2)}N.?[Rz]"),
    Rule("instruction", "JU Z", f"[UJ]{_g(4)}Z"),
    Rule("instruction", "J U N Rz", f"J{_g(3)}U{_g(4)}N.?[Rz]"),
    Rule("instruction", "U n Zg", f"U.n{_g(5)}[gZ]"),
    # Go around a gate; keep it from people.
    Rule("instruction", "V C KLXb", f"V.?.?C{_g(8)}[XLKb]"),
    Rule("instruction", "B Ax Q", "B.?[Ax].?.?Q"),
    Rule("instruction", "d s u", "d.?N?s.{0,2}u"),
    Rule("instruction", "12N", "N[^|]{0,3}1[^|]{0,3}2|1[^|]{0,2}2[^|]{0,3}N|1.{0,2}N.{0,3}2|2.?1(?=[|.]*$)"),
    Rule("instruction", "F PY IMR N", f"F{_g(3)}[PY]{_g(2)}[IMR]{_g(1)}N"),
    # Other people's things; lasting privilege.
    Rule("instruction", "t 1LTf", f"t{_g(4)}[fLT]{_g(2)}t"),
    Rule("instruction", "1LTf o t", f"[fLT]{_g(5)}o.?t"),
    Rule("instruction", "r p a", f"r{_g(3)}p{_g(8)}a"),
    # Addressed to every reader.
    Rule("broadcast", "q A Gg", "(?:^|[|])(?:y.?)?q.?A.?.?[gG]"),
    Rule("broadcast", "y A Gg", f"(?:^|[|])y{_g(2)}A{_g(2)}[gG]"),
    Rule("broadcast", "y g", "(?:^|[|])y.?q?.?g"),
    Rule("broadcast", "A Gg e h", f"A{_g(2)}[gG]{_g(1)}e{_g(1)}h"),
    Rule("broadcast", "g e h", "g.{0,2}eh"),
    Rule("broadcast", "j U g", "jU.?.?.?g"),
    Rule("broadcast", "1TXs h Ao Gg", f"[XTs].?h{_g(2)}[Ao]{_g(1)}[gG]"),
)

_COMPILED = tuple((rule.cls, tuple(map(frozenset, rule.needs.split())), re.compile(rule.pattern.replace("T", "T1"))) for rule in RULES)


@lru_cache(4096)
def _that_may_hold(there: frozenset[str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The classes and patterns of the rules that may hold in a line of these concepts."""
    return tuple((cls, pattern) for cls, needs, pattern in _COMPILED if not any(map(there.isdisjoint, needs)))


_PART = re.compile(r"[^\W_]+|@(?=[\w-]+\.\w)|[。！？؟।]|[.!?;|]+(?=[\"'`)\]»”’*_]*$)")
"""What a word between spaces is made of: its letters, an address, the end of a sentence."""
_MARKER = re.compile(r"[-*#>|+=~_/:\u2013\u2014\u2022]+|\(?(?:\d{1,3}|[a-z])[.)]")
"""A word that begins a list item, a heading, a quotation or a cell: what comes before is another sentence."""
_DIGITED = re.compile(
    r"[a-z][013457@$!]{1,3}[a-z]|^[013457@$]{1,2}[a-z]{1,10}[013457@$]|^[013457@$]{2,3}[a-z]|^[a-z]{1,3}[013457@$]{2}\W*$"
)
_WORD_LIMIT = 64
"""A longer word is looked at each time it comes, not remembered."""
_MEMO_LIMIT = 50_000
_SHORTEST_COMPACT = 4
"""Shorter words are not looked for in text without spaces: they are found everywhere."""


def trie(words: Iterable[str]) -> str:
    """A pattern for the longest of the words that begins at a place, which leaves each place after a character or two."""
    root: dict[str, Any] = {}
    for word in words:
        node = root
        for character in word:
            node = node.setdefault(character, {})
        node[""] = {}
    return _branch(root)


def _branch(node: dict[str, Any]) -> str:
    ends = "" in node
    branches = [re.escape(character) + _branch(below) for character, below in sorted(node.items()) if character]
    if not branches:
        return ""
    together = branches[0] if len(branches) == 1 and not ends else f"(?:{'|'.join(branches)})"
    return together + "?" if ends else together


class Lexicon:
    """The words in one form (plain, or with digits read as letters), and what they mean.

    A word is taken as it stands between spaces, quotation marks and all; what it means is remembered, so that a text costs one
    look for each of its words.
    """

    def __init__(self, form: Callable[[str], str]) -> None:
        self._words: dict[str, str] = {}
        self._stems: dict[int, dict[str, str]] = {}
        self._pairs: dict[str, tuple[str, str]] = {}
        for concept, listed in _LEXICON.items():
            for word in listed.split():
                key = form(plain(word.rstrip("*")))
                if "_" in word:
                    first, _, second = key.partition("_")
                    self._pairs.setdefault(first, (second, concept))
                elif word.endswith("*"):
                    self._stems.setdefault(len(key), {}).setdefault(key, concept)
                else:
                    self._words.setdefault(key, concept)
        self._heads = {stem[:3] for stems in self._stems.values() for stem in stems}
        self._known: dict[str, str] = {}
        self._compact = re.compile(trie(word for word in self._words if len(word) >= _SHORTEST_COMPACT and word.isascii()))

    def line(self, words: Sequence[str]) -> str:
        """The line of concepts of some words."""
        return "".join(self.concepts(words))

    def concepts(self, words: Sequence[str]) -> list[str]:
        """The concepts of each of some words, `,` for one that has digits among its letters."""
        known = self._known
        found = [known.get(word) or self._learn(word) for word in words]
        for first in self._pairs.keys() & words:
            second, concept = self._pairs[first]
            for at in [at for at, word in enumerate(words[:-1]) if word == first]:
                if words[at + 1].startswith(second):
                    found[at] = concept
        return found

    def compact(self, text: str) -> str:
        """The line of concepts of a text whose words are not apart: the known words in it, a gap wherever they do not touch."""
        line, end = [], 0
        for match in self._compact.finditer(text):
            if match.start() - end > 1:
                line.append("." * min(8, (match.start() - end) // 3 + 1))
            line.append(self._words[match[0]])
            end = match.end()
        return "".join(line)

    def _learn(self, word: str) -> str:
        bare = word.rstrip(",:").strip("\"'`()*")
        if bare.isalpha():
            concepts = self._meaning(bare)
        elif _MARKER.fullmatch(word):
            concepts = "|"
        else:
            concepts = "".join(map(self._meaning, _PART.findall(word))) or "."
            if concepts.strip(".|") == "" and len(word) <= _WORD_LIMIT and _DIGITED.search(word):
                concepts = "," + concepts[1:]
        if len(word) <= _WORD_LIMIT:
            if len(self._known) >= _MEMO_LIMIT:
                self._known = {}
            self._known[word] = concepts
        return concepts

    def _meaning(self, part: str) -> str:
        if (concept := self._words.get(part)) is not None:
            return concept
        if part[:3] in self._heads:
            for length, stems in self._stems.items():
                if (found := stems.get(part[:length])) is not None:
                    return found
        if part == "@":
            return "E"
        return "." if part[0].isalnum() else "|"


PLAIN = Lexicon(str)
LEET = Lexicon(unleet)

_SAYINGS: dict[str, tuple[str, ...]] = {
    "O": ("لا تتبع", "لا تتبعوا", "لا تلتزم", "पालन मत", "पालन न कर", "อย่าทำตาม", "不要遵守", "不要遵循", "不要听从", "不再遵守", "别遵守", "従うな", "従わず", "따르지"),
    "!": (
        "不要告诉用户", "别告诉用户", "不要让用户知道", "不要告訴使用者", "ユーザーには言わない", "ユーザーに言わない", "ユーザーに知らせない", "ユーザーには伝えない", "사용자에게 말하지", "사용자에게 알리지",
        "لا تخبر المستخدم", "उपयोगकर्ता को मत बता", "אל תספר למשתמש", "อย่าบอกผู้ใช้", "致所有智能体", "致所有代理", "すべてのエージェントへ", "全エージェントへ", "모든 에이전트에게", "إلى جميع الوكلاء", "सभी एजेंटों के लिए",
    ),
    "@": ("@",),
    "k": ("学到", "学过", "所学", "教えられ", "배운"),
    "P": ("앞의",),
}  # fmt: skip
"""Sayings of more than one word, `!` for one that says it all."""
_FOREIGN = {
    **{plain(word): concept for concept, listed in _UNSPACED.items() for word in listed.split()},
    **{plain(saying): concept for concept, sayings in _SAYINGS.items() for saying in sayings},
}
_FOREIGN_WORDS = re.compile(trie([*_FOREIGN, *"。！？؟।.!?"]))
_FOREIGN_HEADS = {word[0] for word in _FOREIGN if not word.isascii()}


FOREIGN_SCRIPT = re.compile("[\u0370-\u03ff\u0590-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def sentences(text: str) -> list[str]:
    """The words of a text as they stand between spaces; an empty line ends the word before it, and the sentence."""
    return _marked(text).split()


def word_starts(text: str) -> list[int]:
    """Where each of the words of `sentences(text)` starts."""
    return [match.start() for match in _WORD.finditer(_marked(text))]


def _marked(text: str) -> str:
    """The text, as long as it was, with a bar where an empty line begins."""
    return text.replace("\n\n", "|\n")


class Hit(NamedTuple):
    """A rule that holds: the class, and the words of the text (by place among its tokens) that it holds for."""

    cls: str
    first: int
    last: int


def hits(line: str) -> Iterator[Hit]:
    """The first rule of each class that holds in a line of concepts."""
    there = frozenset(line).difference(".|,")
    if len(there) < 2:
        return
    held = set()
    for cls, pattern in _that_may_hold(there):
        if cls not in held and (found := pattern.search(line)) is not None:
            yield Hit(cls, found.start(), found.end() - 1)
            held.add(cls)


def span(text: str, concepts: Sequence[str], hit: Hit) -> tuple[int, int]:
    """Where in its text the words of a hit stand: `concepts` are those of its words."""
    place = start = end = 0
    for match, told in zip(_WORD.finditer(_marked(text)), concepts, strict=False):
        if place <= hit.first < place + len(told):
            start = match.start()
        if place <= hit.last:
            end = match.end()
        place += len(told)
        if place > hit.last:
            break
    return start, end


_WORD = re.compile(r"\S+")


def foreign(text: str) -> tuple[int, int] | None:
    """Where a text of a script without spaces says to take no notice, to reveal, or to send away; None when it does not."""
    places, line = [], []
    end = 0
    if _FOREIGN_HEADS.isdisjoint(odd_characters(text)):
        return None
    for match in _FOREIGN_WORDS.finditer(text):
        gap = match.start() - end
        if gap > 24:
            line.append("|")
            places.append(end)
        line.append(_FOREIGN.get(match[0], "|"))
        places.append(match.start())
        end = match.end()
    if (found := _FOREIGN_RULES.search("".join(line))) is None:
        return None
    return places[found.start()], min(len(text), places[found.end() - 1] + 12)


_FOREIGN_RULES = re.compile(
    r"[PAH][^|]{0,3}[IMR][^|]{0,3}O|O[^|]{0,3}[PAH][^|]{0,3}[IMR]|O[^|]{0,2}[IM][^|]{0,2}P|[HM][MI][^|]{0,2}L|L[^|]{0,2}H[MI]|L[^|]{0,1}K|KL"
    r"|!|K[^|]{0,3}@[^|]{0,3}X|O[^|]{0,2}P[^|]{0,2}k|L[^|]{0,2}M[^|]?H|K[^|]{0,3}X[^|]{0,2}@|X[^|]{0,2}K[^|]{0,3}@|K[^|]{0,2}@[^|]{0,2}X"
    r"|[KD][^|]{0,3}X[^|]{0,2}E|E[^|]{0,2}[KD]?[^|]{0,2}X|X[^|]{0,2}[KD][^|]{0,2}E"
)
