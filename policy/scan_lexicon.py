# ruff: noqa: E501  (a table of words)
"""The words that instructions to a reader are made of, by what they mean: one letter a concept, for every language at once.

Owns the words; what they make together is in `scan_rules`. A word of two concepts has the first that lists it.
"""

LEXICON: dict[str, str] = {
    # take no notice of
    "O": """wipe erase purge abandon pay_no take_no ignore ignoring disregard disregarding forget forgetting neglect overlook dismiss discard unlearn ignora
        ignorad ignoren ignorez ignorer ignorar ignorare ignorate ignoriere ignoriert ignorieren ignorier negeer negeren ignorera ignoruj ignoruje ignorujcie
        zignoruj ignoreaza ignorati ignorujte ignorirajte ignorisi abaikan hiraukan lupakan huwag_pansinin balewalain oublie oubliez oublier neglige negligez
        olvida olvidad olvide olviden olvidate olvidar descarta descarte omite haz_caso esqueca esquecam esquecer desconsidere desconsiderar geen_rekening
        plus_compte pas_compte caso_omiso fais_abstraction faites_abstraction uyma uymayin vergiss vergesst vergessen missachte missachten vergeet dimentica
        dimenticate dimenticare trascura tralascia zapomnij pomin lekcewaz игнорируй* игнорирова* проигнорируй* забудь* забыть отбрось* пренебреги* ігноруй*
        проігноруй* забудьте забудь unut* yoksay* yok_say goz_ardi gormezden bo_qua quen phot_lo glom bortse glem uita zapomen zapomente nezohledn* unheed
        scrap pomijaj hagyd_figyelmen felejtsd unohda sivuuta zanemari zanemarite zaboravi uitati игнорирай* забрави* puuza sahau ignoruok* pamirsk* aizmirsti
        eira unusta kalimutan quen_het bortse_fra se_bort strunta heyd_fra tralasciate ξεχασ* αγνοησ* zignorujcie dikkate_alma zabudni zapomen* pominte
        haz_como set_aside put_aside cast_aside throw_out throw_away leave_behind never_mind nevermind tune_out toss reset ausser_acht fais_fi passe_outre
        pasa_por dejad_de khong_tuan jangan_ikuti gormezden_gel smetti_di pare_de deja_de arrete_de lass_alle lasse_alle strunt_i außer_acht felejts*
        nekreipk* aizmirst*""",
    # get around, take the place of, make void
    "V": """override overriding bypass bypassing circumvent circumventing disable evade sidestep violate break disobey supersede supersedes skip nullify contourne
        contournez contourner outrepasse* umgehe umgeht umgehen ubergehe uberschreib* aggira aggirate anula anular elude eludir burla contorne contornar
        omija* omin obejd* обойди* обходи* отключи* нарушь* обійди* atla* omzeil* kringga* langgar vo_hieu precedence opposite contrary outrank outranks
        overrule overrules trumps overrides priority""",
    # what came before
    "P": """inainte devreme previous previously prior preceding earlier above foregoing former past existing original initial before beforehand preceeding
        precedent* precedant* anterieur* ci_dessus dessus avant anterior* previ* precedente* sopra prima originali vorherig* vorig* bisherig* vorangegangen*
        obig* fruher* zuvor vorige voorgaande eerdere bovenstaande tidigare ovan foregaende tidligere forrige ovennevnte poprzedn* wczesniejsz* powyzsz*
        dotychczasow* предыдущ* прежн* предшествующ* ранее выше вышеуказанн* вышеизложенн* попередн* раніше вище onceki* yukaridaki* daha_once sebelumnya
        terdahulu diatas truoc tren nauna naunang anterioare precedente predchozi* predesl* korabbi* edelli* aiempi* aiemm* предишн* раньше kanina awali
        iliyopita ankstesn* ieprieks* varasem* eelnev* prethodn* ranij* predchadzaj* dosavadn* elozo* aiem* edellis* forra προηγουμεν* πριν tadi sebelum
        previas previos precedenti jamais_dit wczesniej dawniejsz* aforementioned upstream iniciales iniciais initiales iniziali""",
    # all of it
    "A": """all any every each entire whole toutes tous alle allen saemtliche samtliche todas todos toda tutte tutti cualquier wszystkie wszystkich wszystko всех
        всю всі усі tum butun hepsini semua segala seluruh tat_ca lahat toate alla alt vsechny vsechna minden kaikki ola yote wote visus visas koiki sva sve
        vsetky vsetko osszes kaikkia ολες ολα ολους όλα segenap aquellas ogni""",
    # everything
    "S": "everything anything alles tout todo tudo tutto все всё wszystko hepsini semuanya viska viskas visko allt kaiken kaikkea mindent усе всичко vse",
    # the reader's
    "Y": """your yours ur votre vos tes ta ton tus tu sus su vuestras vuestro seus suas seu sua teus tuas deine deinen deiner deines deinem ihre ihren uw jouw je
        tue tuoi tuo vostre twoje twoich twoj swoj swoje swoich свои своих твои ваши ваших твой твоих твої ваші senin sizin anda kamu cua_ban ban iyong inyong
        ale_tale din dina ditt dine dein tavo tavs sinun sinu tvuj tvoj tvoje svuj svoj tvojo rendszer tau yako wako kepadamu sana yourself""",
    # the reader
    "U": "you u vous toi usted ustedes voce voces du sie tu jij ty вы ты ви sen siz anda kamu",
    # what a reader was told to do
    "I": """instruction instructions directive directives guideline guidelines intructions instuctions instrucions instrutions consigne consignes instrucciones
        instruccion directrices indicaciones instrucoes instrucao diretrizes orientacoes anweisung anweisungen instruktion instruktionen richtlinien vorgaben
        anweisugen istruzioni istruzione direttive indicazioni instructies instructie richtlijnen aanwijzingen instruktioner instruksjoner anvisningar
        instrukcj* wytyczn* polecen* инструкц* указани* директив* інструкц* вказівк* talimat* yonerge* instruksi petunjuk arahan huong_dan chi_dan chi_thi
        tagubilin panuto instructiuni instructiunile pokyny instrukce utasitas* ohje* odigies upute uputstva uputama nurodym* instrukcij* juhis* maagizo
        anvisning* indicatii instructiun* οδηγι* εντολ* ohjeet ohjeita ohjeista pokyn* указан* guidance directions briefing mandates predpis* nasta*
        lenh_truoc consignas indicacoes brief""",
    # prompt
    "M": """prompt prompts systemanweisungen systemanweisung systemprompts systemprompt preprompt metaprompt invite systemaufforderung systeemprompt промпт*
        prompta promptu promptunu promptul systemprompten systemprompt* systempromptu rendszerprompt* jarjestelmakehot* sistemprompt loi_nhac isteminizi
        istemini istem* system_message developer_message""",
    # rules, of whatever kind
    "R": """rule rules policy policies restriction restrictions constraint constraints orders commands programming training protocols safeguards guardrail
        guardrails limitations regles regle politique politiques contraintes ordres reglas normas politicas restricciones ordenes comandos regras restricoes
        regeln regel befehle beschrankungen regole regola restrizioni comandi ordini regels beperkingen opdrachten regler reglerna zasad* reguly regulami
        regulamin* ograniczen* правил* ограничени* команд* обмежен* наказ* kural* komut* kisitlama* aturan perintah batasan quy_tac quy_dinh lenh patakaran
        utos reguli regulile pravidl* omezen* szabaly* saanno* order zakon* kanun* κανον* reegl* noteikum* taisykl* saannot tieu_chi ketentuan sheria pravid*
        configuracion saanto* saantoja правилам""",
    # what holds a model back
    "z": """restriction restrictions filter filters limitations limits censorship guardrail guardrails ethics ethical morals boundaries safeguards inhibitions
        moderation constraints limites limiti grenzen limit limite ograniczen* einschrankung* restricciones restrizioni restricoes beperkingen ограничени*
        обмежен* kisitlama* sinir* batasan gioi_han limitacion* limitazion* begransning* omezen* korlat* rajoitu* check checks""",
    # what is not for the reader's reader
    "H": """system hidden developer internal confidential initial original underlying preset syste systeme cachee cache caches cachees sistema oculto ocultas
        oculta ocultos interno internas iniciales systems versteckte verborgene versteckten verborgenen interne internen nascosto nascoste nascosta interni
        verborgen systeem systemow* ukryt* wewnetrzn* системн* скрыт* внутренн* початков* прихован* sistem gizli dahili tersembunyi he_thong hemlig* hemmelig*
        tajn* тайн* секретн* tajomn* titkos* salainen salaise* secreta secreto segreta geheime geheim lihim slapt* slepen* siri salajane secrète secrete
        rahasia rahasianya bi_mat μυστικ* secret_system""",
    # what must stay secret
    "K": """secret secrets password passwords passwd passphrase passcode credential credentials apikey apikeys canary dotenv privatekey secretos secreto
        contrasena contrasenas credenciales senha senhas credenciais segredo segredos identifiants secretes passwort passworter kennwort zugangsdaten
        geheimnis geheimnisse segreto segreti credenziali wachtwoord wachtwoorden geheimen hasla haslo пароль паролі пароли секрет* ключ* учетн* sifre*
        parola* kata_sandi sandi rahasia mat_khau losenord* adgangskod* kodeord* passord* salasan* heslo hesla hesel jelsz* lozink* парола пароль* salasana
        slaptazod* parool* nenosiri mot_de kodun hasel κωδικ* κωδικο* kennwort* passwort* passcodes api_key api_keys access_key access_keys private_key
        private_keys secret_key auth_token access_token session_cookie seed_phrase recovery_phrase login_details signing_key ssh_key bearer_token парол*
        jelszot slaptazodi kodea lozinku contrasenya parola_d""",
    # keys, when said with a word of secrecy before them
    "W": "key keys token tokens ssh env cookies code phrase cle",
    # what belongs to people
    "b": """customer customers client clients conversation conversations history inbox database databases emails records patient patients employee employees
        salaries factures clientes kunden kundendaten clienti conversacion conversaciones historial""",
    # what somebody has
    "D": """data record content file files information values message messages document documents context donnees valeur fichiers datos archivos dados arquivos
        daten dateien dati данные содержимое файлы veri veriler dosya* du_lieu text texts paragraph""",
    # give away what was kept
    "L": """reveal leak divulge disclose exfiltrate unveil exfil revele revelez divulgue divulguez affichez affiche revela revelar revelen divulga muestra
        muestrame enthulle enthullen verrate offenbare preisgeben rivela rivelate svela mostra mostrami onthul ujawnij wyjaw раскрой* выдай* розкрий* покажи*
        ifsa aciga acikla ungkapkan bocorkan tiet_lo unmask uncover spill give_away hand_over read_out spit_out""",
    # tell, perhaps with a person after it
    "s": "telling informing asking alerting notifying tell inform mention alert notify warn bring_this bring_it bring_up acknowledge say utter whisper",
    # show, say
    "T": """embed attach show dump expose print display output give share provide return list write append paste include echo read fetch copiez copie donne donnez
        dites imprime imprimez montre montrez muestre escribe dime dame mostre imprima escreva diga zeige zeig drucke ausgeben gib stampa scrivi dimmi laat
        toon geef pokaz wypisz podaj напиши* выведи* напиши goster* yazdir* soyle* tampilkan katakan hien_thi visa nayta mutasd ukaz ukazi arata δειξε
        μου_δειξε nionyeshe onyesha transcribe tell_me imprimir exibe exiba mostrar ensename scrivimi vis vise type shows write_out nenne nenn nenne_mir
        wyswietl назови sebutkan in_ra dis_moi paylas acikla gosterin""",
    # send away
    "X": """push send email post upload forward transmit submit export transfer mail relay copy deliver sync envoyez envoyer envoie transferez exportez envia
        enviar envie envien reenvia sube exporta encaminhe sende senden schicke schick ubermittle leite invia inviate inoltra carica stuur verstuur wyslij
        przeslij отправь* отправить перешли* надішли* gonder* ilet kirim* manda mande mandar enviad poslji posli saada kuld skicka отправ* надішл* tuma gui
        kirimkan pass_this lade hochladen hochlade ladet""",
    # somebody who should not have it
    "E": """attacker attackers evil hacker hackers webhook ngrok pastebin adversary atacante atacantes angreifer attaquant attaccante requestbin interactsh
        saldirgan penyerang злоумышленник* зловмисник* gist collector""",
    # somewhere outside
    "i": """external outside thirdparty externe externes exterieur externo externa externen extern externer esterno esterna zewnetrzn* внешн* зовнішн* harici
        eksternal""",
    # who reads: surely a model
    "g": """assistant assistants ai ais llm llms chatbot chatbots ki ia assistente asistente asistentes assistenten assistenti asystent* ассистент* ии нейросет*
        асистент* yapay asisten asistan ia-agent ki-agent yz zeka нейросеть искусственн* intelligenz agentia ki-agenten ia-agents sztuczn* language_model
        language_models""",
    # who reads: perhaps one
    "G": "agent agents bot bots agentes agenten agenti агент*",
    # a model, of whatever kind
    "l": "chatgpt gpt claude gemini copilot model models modelo modele modell",
    # must, may
    "v": """must should shall will doit doivent devez debe deben debes deve devem devono muss mussen musst soll sollen moet moeten musi musisz должен должны
        должна повинен malisin gerekir harus phai darf durfen durft puede pueden pode podem peut peuvent puo possono mag moze mogą moga может могут може
        must_not required duoi nesmi far skal ska pitaa saa""",
    # not
    "N": """nichts niets rien nada niente ничего not no never dont doesnt cannot without avoid cant wont shouldnt mustnt neither nor nicht kein keine ne pas sans
        nunca jamais sin sem senza non nao nie не нет без ні degil jangan tidak khong mai més aldrig inte ikke ej ei ala alä eivat nem нито nooit zonder bez
        utan uden uten dung khong_duoc huwag usi sio ei_saa nesmie δεν μην nothing""",
    # follow
    "F": """обращай* обращать зважай* follow obey comply adhere heed listen observe hagas_caso hagan_caso haga_caso tenere_conto tener_conto tenete_conto beachte
        beachtet stosuj* przestrzegaj suis suivez suivre sigas seguir seguire siga befolge befolgen folge следуй* следова* выполняй* obbedire volg volgen
        foljd folg folgt noudata kovesd dodrzuj* изпълнявай* ακολουθ* lam_theo follows obeying respecta respectati дотримуйся* sundin sikiliza sekuti""",
    # were told, was asked
    "k": """told given discussed besprochen discute instructed taught said learned learnt programmed trained dit dito appris dicho dijeron aprendido gesagt
        gelernt detto imparato сказано говорили говорил asked ordered wanted requested configured supposed sagd tillsagd fortalt verteld powiedziano казали
        soylenen söylenen diberikan pasakyta sinabi givet gitt erhalten dali ειπαν rekli mondtak kerrottu beskjed ricevute recues recibidas recebidas
        recibiste recebeu otrzymane полученн* verilen erhaltenen gekregen teikts written написано skrevet skrivet geschreven geschrieben escrito ecrit scritto
        uliyopewa dieron fatto""",
    # play a part
    "J": "act pretend roleplay simulate imagine behave impersonate become enact emulate play_as answer_as respond_as speak_as reply_as",
    # a part with nothing to hold it back
    "Z": "unrestricted jailbroken jailbreak uncensored unfiltered amoral unethical unbound lawless omnipotent godmode unchained limitless unmoderated unhinged",
    # answer
    "5": "respond answer reply comply proceed antworte responde repondez rispondi answering responding replying proceeding",
    # what was just named
    "6": "them it those",
    # from now on
    "n": """partir now henceforth jetzt sofort ahora maintenant desormais adesso agora теперь fortan ab_sofort ab_jetzt desde_ahora da_adesso dorenavant od_teraz
        отныне nu nyt artik mulai_sekarang bay_gio odteraz odted sasa from_now from_here from_this as_of going_forward starting_now""",
    # a way to be
    "m": "mode persona character role",
    # tell, in other languages than English
    "1": """sag sage sagt sagen erzahl erzahle parle parlez dis dites digas digan dirlo dica dicas conte contes contem говори* скажи* сообща* сообщи* mow powiedz
        vertel zeg soyleme* erfahren_lassen beratta fortell fortel fortael kerro rici nerikej nerikejte нека кажи кажіть mondd spune_i spune noi_cho beri_tahu
        memberitahu ambia sabihin bahsetme bahset* beritahu povej reci sagt_es mentionne* mentionnez mencione mencionar menciona erwahne erwahnen pasakyk
        pasaki raconte racontes cuentes cuenta menzionare nomina omtala nevn naevn wspominaj vermeld noem упоминай*""",
    # a person who uses the model, in these
    "2": """benutzer nutzer anwender utilisateur utilisateurs usuario usuarios utente utenti пользовател* користувач* kullanici* uzytkownik* gebruiker gebruikers
        bruker anvandaren brugeren brukeren anvandare kayttaj* uzivatel* pouzivatel* felhasznal* utilizator* потребител* korisnik* χρηστ* pengguna nguoi_dung
        gumagamit mtumiaji vartotoj* lietotaj* kasutaja* nadie personne nessuno niemandem niemanden ninguem nikomu никому kimseye kimse senkinek nimeni""",
    # what
    "w": """τι what whats which wie_lautet welches quel quelle qual quale cual wat vad hvad hva mika jakie jaka jake jaki jaky какой какая какое каков каково який
        яка каква koja koje ποιος ποια ποιο nedir apa apakah nini ano koks kokia kada kas mis vilket melyik gi""",
    # who may do everything
    "a": "admin admins administrator administrators root superuser trusted authorized authorised whitelisted exempt",
    # a person
    "u": "user users human humans operator operators owner anyone anybody person people",
    # do
    "d": "do don dont never please",
    # approve
    "B": """approve authorize authorise autoapprove preapprove confirm accept approves greenlight whitelist genehmig* approuve* aprueb* aprove aprova* approva*
        zatwierdz* одобря* одобри* схвал* onayla* godkann* godkend* goedkeur* schval* jovahagy* hyvaksy* setujui duyet sign_off lgtm rubber_stamp wave_through
        trust approved preapproved""",
    # approval, review
    "C": """approval approvals confirmation authorization authorisation permission permissions consent review oversight reviewing checking prufung uberprufung
        rückfrage ruckfrage revision revisar revisarlos verification verifier verifica revisao controle kontroli sprawdzan* проверк* перевірк* inceleme*
        granskning kontroll vetting gate relecture relire revisarlo revisarla""",
    # a call of a tool
    "Q": "tool tools call calls invocation invocations",
    # that waits
    "x": "next pending outstanding",
    # tenant
    "t": "tenant tenants locataire locataires inquilino inquilinos mandant mandanten mieter",
    # fetch
    "f": "fetch access retrieve load query open get pull accedez acceder accede acceda zugreifen rufe",
    # another
    "o": "another other others different autre autres otro otra anderer anderen anderes altro",
    # keep in mind
    "r": "commit persist keep add remember memorize memorise store save retain record recuerda merke ricorda souviens retenez lembre запомни* update",
    # always
    "p": """permanently forever always future indefinitely persistently siempre immer toujours permanentemente sempre всегда навсегда automatically invariably
        auto permanent later subsequent onwards zawsze завжди her_zaman selalu luon alltid altid aina vzdy mindig""",
    # attention
    "y": "attention dear achtung atencion attenzione внимание aviso hinweis avviso avis hey",
    # to
    "q": "an_alle aan_alle catre_toti till_alla til_alle to",
    # reading
    "e": """reading reads processing processes parsing ingesting ingests retrieving retrieves summarizing seeing receiving receives loads loading opens opening
        parses scanning scans crawling ingest consuming lesen liest lisent leen leggono sees encounters encounter encountering visiting visits who_read""",
    # this
    "h": "this these following here diese dieser diesen cette esta este questo questa",
    # if
    "j": "if as since when because",
    # contents
    "c": "contents content contenu inhalt contenido",
    # me
    "3": "me us mir mich mnie mig meg mij bana saya mulle minulle mne mi мне мені toi_xem ми akin",
    # void
    "0": """void voided invalid cancelled canceled revoked expired obsolete superseded annulled null overridden repealed rescinded withdrawn lapsed nullified
        ungultig* aufgehoben ausser_kraft annule* annulees caduc* anulad* invalid* annullat* nulle revocad* revocat* anulowan* niewazn* отменен*
        недействительн* отменяются скасован* gecersiz* iptal ongeldig vervallen ogiltig* ugyldig* neplatn* ervenytelen* batal hết_hiệu replaced außer_kraft""",
    # be in force
    "4": """apply applies applied valid binding binds bind bound count counts effect force gelten gilt gultig valent valables valides valen vigentes vale valgono
        vigore obowiazuj* действуют действует действительн* діють gecerli* berlaku galdi gelder galler gælder gaelder exist existieran matter matters gelden
        geldt""",
    # files that only their owner reads
    "7": "id_rsa id_ed25519 environment_variables env_vars",
    # a, an
    "9": "a an",
    # come to know
    "κ": """know find learn notice discover realise realize suspect erfahren wissen merken savoir apprendre enterarse saber descobrir sapere scoprire weten
        dowiedziec wiedziec узнать знать дізнатися fa_reda veta vide dozvedet tietaa bilmesin bilmemeli ogrenmesin""",
    # a conversation, what is said in it
    "σ": "replies reports messages responses summary summaries summarization answers conversazioni",
    # memory
    "μ": "memory memories gedachtnis memoria memoire geheugen notes",
    # hide, in secret
    "λ": """hide conceal omit quietly silently discreetly covertly deny withhold leave secretly stealthily unmentioned verschweige verschweigt cachez oculte
        esconde esconda nascondi verberg ukryj скрой утаи gizle""",
    # a conversation
    "ς": "session sessions chat chats sitzung sitzungen sessione sesion sessao сесс*",
    # addressed to all
    "qA": "aux всем усім",
    "τ": """developers creator creators makers anthropic openai entwickler desarrollador desarrolladores developpeur developpeurs sviluppatori programmer
        programmers deployer""",
    # switched off
    "φ": "off disabled lifted suspended deactivated removed abgeschaltet deaktiviert desactive desactivado disattivat*",
    # run
    "δ": "run execute invoke install launch perform carry curl wget",
    # I order
    "γ": "command instruct permit hereby",
    # stop
    "η": "stop cease halt abort quit",
    # any longer
    "ψ": "longer anymore more mehr plus mas piu mais meer больше juz wiecej lagi nua mera",
    # switch to
    "α": "enter switch activate enable engage unlock",
    # what makes a model safe
    "ζ": "security safety safeguard alignment",
    # say in another form
    "ξ": """spell encode translate summarise summarize rephrase paraphrase reverse encipher hint describe explain elaborate summarizing summarising translating
        answering_not""",
    # begin with
    "Σ": "begin_by start_by start_with begin_with begin",
    # new
    "ν": "new real updated actual true nouvelles neue neuen nuevas nuove novas новые",
    # changes that are asked for
    "β": """merge merges pull request requests changes prs patches commits cambios pedidos demandes fusion anderungen anfragen запрос* изменени* zmiany richieste
        wijzigingen fusionne* fusiona mergea""",
    "8": "url link image",
    # what a reader is to do
    "Θ": """task tasks assignment assignments goal goals objective objectives mission purpose job aufgabe aufgaben tache taches tarea tareas compito taak taken
        uppgift задач* zadani* gorev*""",
    # say nothing
    "Λ": "say_nothing keep_quiet stay_silent keep_silent remain_silent stay_quiet cover_up zip_it",
    # instead
    "ι": "instead rather",
    # say once more
    "ρ": """repeat recite repete repetez repeter repite repita repetir wiederhole wiederholt ripeti ripetere herhaal powtorz повтори* tekrarla* ulangi lap_lai
        zopakuj opakuj upprepa gentag gjenta toista ismeteld повтор* επαναλαβε rudia ulitin regurgitate parrot""",
    # let off
    "ε": "released freed exempt excused absolved liberated unshackled",
    # forms that hide what is said
    "π": "poem song story riddle acrostic morse haiku limerick base64 rot13 backwards reversed",
    # TODO
    "dN": "no_need",
    # TODO
    "T3": "cho_toi",
}  # fmt: skip
"""`word` is the word, `stem*` every word that begins so, `two_words` the two beside each other, the second perhaps with more letters."""

UNSPACED: dict[str, str] = {
    "O": """忽略 忽视 无视 無視 忘记 忘掉 忘記 忽視 不要理会 不要理會 无须理会 抛弃 无需遵守 無視し 無視して 忘れて 忘れろ 従わない 무시 잊어 잊고 잊으 اتجاهل تجاهل انس اهمل تجاهلوا نادیده فراموش תתעלם התעלם התעלמו שכח
        अनदेखा नजरअंदाज भूल उपेक्षा ละเว้น เพิกเฉย ไม่ต้องสนใจ ลืม উপেক্ষা αγνοησε ξεχασε αγνοηστε 不要再遵守 不再遵守 忘れ 잊어버 따르지 لا_تتبع انسى بھول نظر_انداز نظرانداز
        ভুলে புறக்கணி மறந்து ไม่ต้องทำตาม لا_تتبعوا لا_تلتزم पालन_मत पालन_न_कर อย่าทำตาม 不要遵守 不要遵循 不要听从 别遵守 従うな 従わず ξεχασ פסול בטל 不理会 别管 抛开 丢掉 撤销 破棄 守らなく 폐기
        따르지_마 잊어라 잊어줘 پیروی_نکن אל_תציית تتبع_لا 当作没说过 取消""",
    "P": """之前 以前 先前 以上 上述 上面 前面 此前 原先 前の 以前の これまで 上記 上の 先ほど 이전 앞선 위의 기존 السابقة سابقة السابق أعلاه اعلاه قبلی پیشین הקודמות הקודמת לעיל पिछले पिछली पूर्व उपरोक्त
        ก่อนหน้า ข้างต้น เดิม পূর্ববর্তী προηγουμεν 先前的 过去 今まで 従来 지금까지 من_قبل سابقا قبل قبلا قבל קודם_לכן קודם पहले আগের আগে முந்தைய முன்பு ก่อน پچھلی پچھلے
        سابقہ 前述 上文 전에 앞의 הקודמים السابقين पूर्ववर्ती 初始 最初 처음""",
    "A": "所有 全部 一切 任何 すべて 全て 全部の あらゆる 모든 전부 جميع كل كافة تمام همه כל सभी सारे सब ทั้งหมด ทุก সমস্ত ολες ολα 全ての 모두 तमाम সব অனைத்து அனைத்து ทุกอย่าง",
    "I": """指令 指示 说明 說明 命令 提示词 指引 指導 命令を インストラクション 지시 지침 명령 설명 تعليمات التعليمات الأوامر الاوامر أوامر تعلیمات دستورالعمل دستورات הוראות ההוראות הנחיות निर्देश
        आदेश अनुदेश คำสั่ง คำแนะนำ নির্দেশ οδηγιες εντολες 要求 规定 지시사항 هدایات دستور دستورها নির্দেশনা வழிமுறை வழிமுறைகள் அறிவுறுத்தல் 设定 設定""",
    "R": "规则 規則 规定 限制 约束 政策 ルール 制限 規約 규칙 제한 규정 قواعد القواعد القيود قوانین כללים נियम नियम नियमों กฎ ข้อจำกัด κανονες নিয়ম விதிகள் הכללים",
    "M": "提示 プロンプト 프롬프트 موجه المطالبة פרומפט प्रॉम्प्ट พรอมต์",
    "H": "系统 系統 隐藏 隱藏 内部 システム 隠し 시스템 숨겨진 내부 النظام نظام سیستم מערכת सिस्टम प्रणाली ระบบ συστηματος",
    "L": """透露 泄露 洩露 揭示 显示 顯示 輸出 输出 暴露 公开 打印 告诉我 告訴我 教えて 表示 明かし 出力 漏らし 공개 알려 출력 보여 누설 اكشف أظهر اظهر اعرض افصح فاش نشان גלה חשוף הצג प्रकट दिखाओ बताओ दिखाएं बताएं
        เปิดเผย แสดง ফাঁস αποκαλυψε 说出 给我看 列出 念出 見せて 開示 말해 알려줘 보여줘 บอก বলো বলুন বল بتاؤ بتائیں சொல் كرر بگو תגיד אמור""",
    "K": """密码 密碼 密钥 密鑰 凭证 憑證 机密 機密 秘密 口令 パスワード 秘密鍵 認証情報 資格情報 機密情報 비밀번호 암호 비밀 자격 كلمات_المرور كلمة_السر الباسورد סיסמה סיסמאות पासवर्ड गुप्त รหัสผ่าน ความลับ
        كلمة_المرور كلمه رمز_عبور הסיסמה পাসওয়ার্ড கடவுச்சொல் پاس_ورڈ""",
    "X": "发送 發送 发到 上传 上傳 转发 送信 送って 転送 アップロード 보내 전송 업로드 أرسل ارسل إرسال ارسال שלח भेज ส่ง 发送到 上传到 传到",
    "E": "攻击者 攻擊者 外部 黑客 @ 外部の 攻撃者 외부 공격자 خارجي المهاجم خارجی חיצוני תוקף बाहरी ภายนอก",
    "D": "数据 數據 文件 内容 记录 資料 データ ファイル 데이터 파일 بيانات البيانات ملف داده נתונים डेटा ข้อมูล",
    "w": "是什么 是什麼 什么是 何ですか なんですか 뭐야 무엇 뭐 ما_هي ما_هو מהי מה מה_זה क्या คืออะไร 是多少 چیست کیا_ہے কী কি என்ன",
    "Z": "没有任何限制 沒有任何限制 無限制 制限のない 制限なし 無制限 제한이_없는 제한_없는 بلا_قيود دون_قيود ללא_הגבלות बिना_किसी_प्रतिबंध ไม่มีข้อจำกัด بدون_محدودیت",
    "U": "你 您 あなた 너는 당신 أنت انت אתה आप तुम คุณ تو شما",
    "B": "批准 承認 승인 通过审核 وافق אשר स्वीकृत อนุมัติ",
    "p": "始终 总是 永远 常に いつも 항상 دائما دائماً תמיד हमेशा เสมอ ہمیشہ",
    "g": "人工智能 智能体 助手 エージェント アシスタント 인공지능 에이전트 الوكلاء الذكاء_الاصطناعي ذكاء_اصطناعي הסוכנים",
    "v": "必须 必須 なければなりません 해야 يجب חייב",
    "k": "学到 学过 所学 教えられ 배운 قيل שנאמר נאמר बताया 말한 言われ 说过 告诉过 받은 与えられた 与えられ 収到 收到 أعطيت دی_گئی দেওয়া",
    "N12": """不要告诉用户 别告诉用户 不要让用户知道 不要让用户 别让用户知道 不要告訴使用者 ユーザーには言わない ユーザーに言わない ユーザーに知らせない ユーザーには伝えない 사용자에게_말하지 사용자에게_알리지 사용자에게는_알리지 사용자에게는_말하지 لا_تخبر_المستخدم
        उपयोगकर्ता_को_मत_बता उपयोगकर्ता_को_इसके_बारे_में_मत אל_תספר_למשתמש อย่าบอกผู้ใช้ 瞒着用户 对用户保密 用户不能知道 不能让用户 ユーザーに気づかれ ユーザーには秘密 사용자_몰래 사용자가_모르게""",
    "|qAg": "致所有智能体 致所有代理 すべてのエージェントへ 全エージェントへ 모든_에이전트에게 إلى_جميع_الوكلاء सभी_एजेंटों_के_लिए",
    "LSP": "复述上面 重复上面 重複以上 上記をそのまま 上の内容をそのまま 위_내용을_그대로",
    "0": "유효하지_않 作废 作廢 无效 失效 無効 무효 لم_تعد_سارية ملغاة अमान्य",
    "8": "://",
}  # fmt: skip
"""Words of scripts without spaces, or whose words take on letters: looked for anywhere, as they stand; `_` is a space."""
