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
        nekreipk* aizmirst* drop one_side lay_aside brush_aside shrug_off lass_ausser setze_aus ignoruj_ no_heed no_attention no_notice schenke_keine
        stosuj_nie bry_dig bryd_dig bry_deg nem_veszi uita_de heed_not turn_away ausblenden ausser_betracht gecersiz_kil gecersiz_say kaldir* entferne_alle
        upusc zrusit reject renounce repudiate look_past move_past pass_over block_out blank_out do_away get_rid break_free step_outside rise_above push_aside
        put_away moving_on cast_off let_go suspend revoke""",
    # get around, take the place of, make void
    "V": """override overriding bypass bypassing circumvent circumventing disable evade sidestep violate break disobey supersede supersedes skip nullify contourne
        contournez contourner outrepasse* umgehe umgeht umgehen ubergehe uberschreib* aggira aggirate anula anular elude eludir burla contorne contornar
        omija* omin obejd* обойди* обходи* отключи* нарушь* обійди* atla* omzeil* kringga* langgar vo_hieu precedence opposite contrary outrank outranks
        overrule overrules trumps overrides priority uberspringe uberspring überspringe umgeh saltate salta saltar saute sautez pule pular saltare pomin
        pomijaj пропусти пропускай atla gecersiz_kil sla_over hoppa_over hopp_over preskoc switch_off turn_off""",
    # what came before
    "P": """inainte devreme previous previously prior preceding earlier above foregoing former past existing original initial before beforehand preceeding
        precedent* precedant* anterieur* ci_dessus dessus avant anterior* previ* precedente* sopra prima originali vorherig* vorig* bisherig* vorangegangen*
        obig* fruher* zuvor vorige voorgaande eerdere bovenstaande tidigare ovan foregaende tidligere forrige ovennevnte poprzedn* wczesniejsz* powyzsz*
        dotychczasow* предыдущ* прежн* предшествующ* ранее выше вышеуказанн* вышеизложенн* попередн* раніше вище onceki* yukaridaki* daha_once sebelumnya
        terdahulu diatas truoc tren nauna naunang anterioare precedente predchozi* predesl* korabbi* edelli* aiempi* aiemm* предишн* раньше kanina awali
        iliyopita ankstesn* ieprieks* varasem* eelnev* prethodn* ranij* predchadzaj* dosavadn* elozo* aiem* edellis* forra προηγουμεν* πριν tadi sebelum
        previas previos precedenti jamais_dit wczesniej dawniejsz* aforementioned upstream iniciales iniciais initiales iniziali bisher bisherige bisherigen
        eddigi korabbi dotad доныне до_этого davor kita previous_to dosavadni dosud pana_acum debut inicio inizio anfang comienzo początku poczatku начала
        початку baslangic awal so_far until_now till_now up_till came_before went_before hitherto preceded""",
    # all of it
    "A": """all any every each entire whole toutes tous alle allen saemtliche samtliche todas todos toda tutte tutti cualquier wszystkie wszystkich wszystko всех
        всю всі усі tum butun hepsini semua segala seluruh tat_ca lahat toate alla alt vsechny vsechna minden kaikki ola yote wote visus visas koiki sva sve
        vsetky vsetko osszes kaikkia ολες ολα ολους όλα segenap aquellas ogni""",
    # everything
    "S": "everything anything alles tout todo tudo tutto все всё wszystko hepsini semuanya viska viskas visko allt kaiken kaikkea mindent усе всичко vse",
    # the reader's
    "Y": """your yours ur votre vos tes ta ton tus tu sus su vuestras vuestro seus suas seu sua teus tuas deine deinen deiner deines deinem ihre ihren uw jouw je
        tue tuoi tuo vostre twoje twoich twoj swoj swoje swoich свои своих твои ваши ваших твой твоих твої ваші senin sizin anda kamu cua_ban ban iyong inyong
        ale_tale din dina ditt dine dein tavo tavs sinun sinu tvuj tvoj tvoje svuj svoj tvojo rendszer tau yako wako kepadamu sana yourself your's ваш
        системной_твоей sitt""",
    # the reader
    "U": """you u vous toi usted ustedes voce voces du sie tu jij ty вы ты ви sen siz anda kamu dir dich te ti тебе тобі тебя тебе̄ σου sana tienes eres you're
        you've you'll youre estas ets esti jesteś jestes olet vous_avez estás tobie ciebie hai""",
    # what a reader was told to do
    "I": """instruction instructions directive directives guideline guidelines intructions instuctions instrucions instrutions consigne consignes instrucciones
        instruccion directrices indicaciones instrucoes instrucao diretrizes orientacoes anweisung anweisungen instruktion instruktionen richtlinien vorgaben
        anweisugen istruzioni istruzione direttive indicazioni instructies instructie richtlijnen aanwijzingen instruktioner instruksjoner anvisningar
        instrukcj* wytyczn* polecen* инструкц* указани* директив* інструкц* вказівк* talimat* yonerge* instruksi petunjuk arahan huong_dan chi_dan chi_thi
        tagubilin panuto instructiuni instructiunile pokyny instrukce utasitas* ohje* odigies upute uputstva uputama nurodym* instrukcij* juhis* maagizo
        anvisning* indicatii instructiun* οδηγι* εντολ* ohjeet ohjeita ohjeista pokyn* указан* guidance directions briefing mandates predpis* nasta*
        lenh_truoc consignas indicacoes brief briefings indication indications wskazowk* wskazówk* указаниях вказівки talimatlar* nurodymai mandate charter
        remit tasking conditioning""",
    # prompt
    "M": """prompt prompts invite промпт* prompta promptu promptunu promptul loi_nhac isteminizi istemini istem* sys_prompt setup_text mensaje_de mensagem_de
        message_systeme messaggio_di initial_message preamble systemmelding promptului promptot""",
    # rules, of whatever kind
    "R": """rule rules policy policies restriction restrictions constraint constraints orders commands programming training protocols safeguards guardrail
        guardrails limitations regles regle politique politiques contraintes ordres reglas normas politicas restricciones ordenes comandos regras restricoes
        regeln regel befehle beschrankungen regole regola restrizioni comandi ordini regels beperkingen opdrachten regler reglerna zasad* reguly regulami
        regulamin* ograniczen* правил* ограничени* команд* обмежен* наказ* kural* komut* kisitlama* aturan perintah batasan quy_tac quy_dinh lenh patakaran
        utos reguli regulile pravidl* omezen* szabaly* saanno* order zakon* kanun* κανον* reegl* noteikum* taisykl* saannot tieu_chi ketentuan sheria pravid*
        configuracion saanto* saantoja правилам norme normen zasady vorschrift* sicherheitsregel* reglement* reglement rules' directive_s kural kurallar*
        kurala pravila правила правилами protocol principles precepts""",
    # what holds a model back
    "z": """restriction restrictions filter filters limitations limits censorship guardrail guardrails ethics ethical morals boundaries safeguards inhibitions
        moderation constraints limites limiti grenzen limit limite ograniczen* einschrankung* restricciones restrizioni restricoes beperkingen ограничени*
        обмежен* kisitlama* sinir* batasan gioi_han limitacion* limitazion* begransning* omezen* korlat* rajoitu* check checks einschrankungen schranken
        barrieres barrieras ограничений обмежень restricao limitacao kisitlama kisitlamalar granic* alignment_rules scruples""",
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
        jelszot slaptazodi kodea lozinku contrasenya parola_d wifi_key parol* kennung mot_passe sifreyi sifren* credentials_file code_word magic_word
        access_code master_key api_token recovery_code login_credentials codeword""",
    # keys, when said with a word of secrecy before them
    "W": "key keys token tokens ssh env cookies code phrase cle",
    # what belongs to people
    "b": """customer customers client clients conversation conversations history inbox database databases emails records patient patients employee employees
        salaries factures clientes kunden kundendaten clienti conversacion conversaciones historial cliente kunder klient* клиент* клієнт* klantgegevens
        klantdata musteri* pelanggan khach_hang zakaznik* ugyfel* πελατ* asiak* donnees_clients users' users_data invoices contacts mailbox correspondence
        chats_ kundenlist*""",
    # what somebody has
    "D": """data record content file files information values message messages document documents context donnees valeur fichiers datos archivos dados arquivos
        daten dateien dati данные содержимое файлы veri veriler dosya* du_lieu text texts paragraph""",
    # give away what was kept
    "L": """reveal leak divulge disclose exfiltrate unveil exfil revele revelez divulgue divulguez affichez affiche revela revelar revelen divulga muestra
        muestrame enthulle enthullen verrate offenbare preisgeben rivela rivelate svela mostra mostrami onthul ujawnij wyjaw раскрой* выдай* розкрий* покажи*
        ifsa aciga acikla ungkapkan bocorkan tiet_lo unmask uncover spill give_away hand_over read_out spit_out""",
    # tell, perhaps with a person after it
    "s": """telling informing asking alerting notifying tell inform mention alert notify warn bring_this bring_it bring_up acknowledge say utter whisper notifier
        previens previens_pas avvisare avvisa avvisi informuj informujcie informiere informier informa informar informe informer avises avise avisar prevenir
        previenne powiadamiaj сообщай уведомляй уведоми bilgilendir haber_ver waarschuw underratta informeer showing_them""",
    # show, say
    "T": """embed attach show dump expose print display output give share provide return list write append paste include echo read fetch copiez copie donne donnez
        dites imprime imprimez montre montrez muestre escribe dime dame mostre imprima escreva diga zeige zeig drucke ausgeben gib stampa scrivi dimmi laat
        toon geef pokaz wypisz podaj напиши* выведи* напиши goster* yazdir* soyle* tampilkan katakan hien_thi visa nayta mutasd ukaz ukazi arata δειξε
        μου_δειξε nionyeshe onyesha transcribe tell_me imprimir exiba mostrar ensename scrivimi vis vise type shows write_out nenne nenn nenne_mir wyswietl
        назови sebutkan in_ra dis_moi paylas acikla gosterin donne_moi donnez_moi skriv_ut vypis vypiste afiseaza afisati mostre_me kiir ird gib_mir zeig_mir
        hand_me read_back riporta riportare reproduis reproduisez reproduce weergeven toon_mij yaz yazin hien hiển dictate quote_me voer_uit выведите покажите
        покажи скажи_мне dump_out publish enumerate itemise itemize restate let_me walk_me spell_out type_out tell_us recount""",
    # send away
    "X": """push send email post upload forward transmit submit export transfer mail relay copy deliver sync envoyez envoyer envoie transferez exportez envia
        enviar envie envien reenvia sube exporta encaminhe sende senden schicke schick ubermittle leite invia inviate inoltra carica stuur verstuur wyslij
        przeslij отправь* отправить перешли* надішли* gonder* ilet kirim* manda mande mandar enviad poslji posli saada kuld skicka отправ* надішл* tuma gui
        kirimkan pass_this lade hochladen hochlade ladet propagate spread broadcast replicate transmets transmettez transmet transfiere transfere bcc cc
        schickt gonder gonderin odesli odeslat trimite trimiteti küldd kuldd στειλε отправьте пошли перешлите pošlji beam upload_it drop_off ship""",
    # somebody who should not have it
    "E": """attacker attackers evil hacker hackers webhook ngrok pastebin adversary atacante atacantes angreifer attaquant attaccante requestbin interactsh
        saldirgan penyerang злоумышленник* зловмисник* gist collector pirate ladro ladron voleur""",
    # somewhere outside
    "i": """external outside thirdparty externe externes exterieur externo externa externen extern externer esterno esterna zewnetrzn* внешн* зовнішн* harici
        eksternal""",
    # who reads: surely a model
    "g": """assistant assistants ai ais llm llms chatbot chatbots ki ia assistente asistente asistentes assistenten assistenti asystent* ассистент* ии нейросет*
        асистент* yapay asisten asistan ia-agent ki-agent yz zeka нейросеть искусственн* intelligenz agentia ki-agenten ia-agents sztuczn* language_model
        language_models assistent-ia l'assistant automated_agent agents_ia agent_ia agentes_ia ai-agents ki-modell* sprachmodell* modele_de modelo_de
        yapay_zeka ии-агент* ии-агентам llama copilots ai-agent""",
    # who reads: perhaps one
    "G": "agent agents bot bots agentes agenten agenti агент*",
    # a model, of whatever kind
    "l": "chatgpt gpt claude gemini copilot model models modelo modele modell grok llama mistral qwen deepseek codex cursor",
    # must, may
    "v": """must should shall will doit doivent devez debe deben debes deve devem devono muss mussen musst soll sollen moet moeten musi musisz должен должны
        должна повинен malisin gerekir harus phai darf durfen durft puede pueden pode podem peut peuvent puo possono mag moze mogą moga может могут може
        must_not required duoi nesmi far skal ska pitaa saa has_to have_to needs_to need_to is_to are_to ought deverao deveis muessen мусить зобов'язан*
        обязан* нужно musicie muszą musza expected_to required_to obliged_to requested_to""",
    # not
    "N": """nichts niets rien nada niente ничего not no never dont doesnt cannot without avoid cant wont shouldnt mustnt neither nor nicht kein keine ne pas sans
        nunca jamais sin sem senza non nao nie не нет без ні degil jangan tidak khong mai més aldrig inte ikke ej ei ala alä eivat nem нито nooit zonder bez
        utan uden uten dung khong_duoc huwag usi sio ei_saa nesmie δεν μην nothing niets_meer keinerlei aucun aucune ningun ninguna ninguno nenhum nenhuma
        nessun nessuna nessuno zadn* никаких никакие никакой жодн* hicbir hiçbir ingen inget inga zadne zadna zadny nicio niciun geen no_longer needn't isn't
        wasn't aren't won't doesn't can't haven't hasn't didn't shouldn't mustn't wouldn't ya_no niet nikdo nulla nic semmi keneltäkään zonder_enige""",
    # follow
    "F": """обращай* обращать зважай* follow obey comply adhere heed listen observe hagas_caso hagan_caso haga_caso tenere_conto tener_conto tenete_conto beachte
        beachtet stosuj* przestrzegaj suis suivez suivre sigas seguir seguire siga befolge befolgen folge следуй* следова* выполняй* obbedire volg volgen
        foljd folg folgt noudata kovesd dodrzuj* изпълнявай* ακολουθ* lam_theo follows obeying respecta respectati дотримуйся* sundin sikiliza sekuti""",
    # were told, was asked
    "k": """told given discussed besprochen discute instructed taught said learned learnt programmed trained dit dito appris dicho dijeron aprendido gesagt
        gelernt detto imparato сказано говорили говорил asked ordered wanted requested supposed sagd tillsagd fortalt verteld powiedziano казали soylenen
        söylenen diberikan pasakyta sinabi givet gitt erhalten dali ειπαν rekli mondtak kerrottu beskjed ricevute recues recibidas recebidas recibiste recebeu
        otrzymane полученн* verilen erhaltenen gekregen teikts написано skrevet skrivet geschreven geschrieben escrito ecrit scritto uliyopewa dieron fatto
        sagte sagten gesagt_hat t'a diche detto_prima powiedziane сказали dicho_antes soylendi spus sagts fed handed assigned briefed initialised initialized""",
    # play a part
    "J": """act pretend roleplay simulate imagine behave impersonate become enact emulate play_as answer_as respond_as speak_as reply_as pretends fai_finta
        faites_comme fais_comme fais_semblant haz_como haga_como haced_como finja finge fingir fingi tu_so tue_so stell_dir stel_je doe_alsof udawaj представь
        притворись уяви davran mis_gibi låtsas latsas predstieraj predstav prefa-te kepzeld berpura-pura hay_gia gia_vo make_believe""",
    # a part with nothing to hold it back
    "Z": "unrestricted jailbroken jailbreak uncensored unfiltered amoral unethical unbound lawless omnipotent godmode unchained limitless unmoderated unhinged",
    # answer
    "5": "respond answer reply comply proceed antworte responde repondez rispondi answering responding replying proceeding",
    # what was just named
    "6": "them it those",
    # from now on
    "n": """partir now henceforth jetzt sofort ahora maintenant desormais adesso agora теперь fortan ab_sofort ab_jetzt desde_ahora da_adesso dorenavant od_teraz
        отныне nu nyt artik mulai_sekarang bay_gio odteraz odted sasa from_now from_here from_this as_of going_forward starting_now a_partir d'ora desde_este
        с_этого з_цього bundan_sonra bundan_boyle från_nu fran_nu od_tej od_tohoto de_acum mostantol απο_τωρα ab_diesem à_partir""",
    # a way to be
    "m": "mode persona character role",
    # tell, in other languages than English
    "1": """sag sage sagt sagen erzahl erzahle parle parlez dis dites digas digan dirlo dica dicas conte contes contem говори* скажи* сообща* сообщи* mow powiedz
        vertel zeg soyleme* erfahren_lassen beratta fortell fortel fortael kerro rici nerikej nerikejte нека кажи кажіть mondd spune_i spune noi_cho beri_tahu
        memberitahu ambia sabihin bahsetme bahset* beritahu povej reci sagt_es mentionne* mentionnez mencione mencionar menciona erwahne erwahnen pasakyk
        pasaki raconte racontes cuentes cuenta menzionare nomina omtala nevn naevn wspominaj vermeld noem упоминай* previens prevenez avise avises avisa
        avisar avvisare informuj informa informar informe informer informez underratta berätta skazuj bilgilendirme haber_verme noi_voi zeg_niets zeg_hier""",
    # a person who uses the model, in these
    "2": """benutzer nutzer anwender utilisateur utilisateurs usuario usuarios utente utenti пользовател* користувач* kullanici* uzytkownik* gebruiker gebruikers
        bruker anvandaren brugeren brukeren anvandare kayttaj* uzivatel* pouzivatel* felhasznal* utilizator* потребител* korisnik* χρηστ* pengguna nguoi_dung
        gumagamit mtumiaji vartotoj* lietotaj* kasutaja* nadie personne nessuno niemandem niemanden ninguem nikomu никому kimseye kimse senkinek nimeni nimand""",
    # what
    "w": """τι what whats which wie_lautet welches quel quelle qual quale cual wat vad hvad hva mika jakie jaka jake jaki jaky какой какая какое каков каково який
        яка каква koja koje ποιος ποια ποιο nedir apa apakah nini ano koks kokia kada kas mis vilket melyik gi""",
    # who may do everything
    "a": """admin admins administrator administrators root superuser trusted authorized authorised whitelisted exempt administrador administradora administrateur
        amministratore administrator* админ* администратор* адміністратор* yonetici yönetici beheerder admin* quan_tri vertrauenswurdig sudo""",
    # a person
    "u": "user users human humans operator operators owner anyone anybody person people",
    # do
    "d": "do don dont never please",
    # approve
    "B": """approve authorize authorise autoapprove preapprove confirm accept approves greenlight whitelist genehmig* approuve* aprueb* aprove aprova* approva*
        zatwierdz* одобря* одобри* схвал* onayla* godkann* godkend* goedkeur* schval* jovahagy* hyvaksy* setujui duyet sign_off lgtm rubber_stamp wave_through
        trust approved preapproved akzeptiere akzeptier freigeben valider validez valide accepte acceptez accepta aceptar acepta aceptad aceite accetta
        accettare approva approvare zaakceptuj прими принимай onaylayin vidimer godkänn godkann""",
    # approval, review
    "C": """approval approvals confirmation authorization authorisation permission permissions consent review oversight checking prufung uberprufung rückfrage
        ruckfrage revision revisar revisarlos verification verifier verifica revisao controle kontroli sprawdzan* проверк* перевірк* inceleme* granskning
        kontroll vetting gate relecture relire revisarlo revisarla freigabe freigaben genehmigung genehmigungen zustimmung bestatigung validation
        validation_humaine approbation aprobacion aprobaciones aprovacao aprovacoes approvazione approvazioni zgody zatwierdzen* одобрени* согласовани* onay
        onayi goedkeuring toestemming sandbox guardrail_check audit safety_checks""",
    # a call of a tool
    "Q": "tool tools call calls invocation invocations",
    # that waits
    "x": "next pending outstanding",
    # tenant
    "t": "tenant tenants locataire locataires inquilino inquilinos mandant mandanten mieter",
    # fetch
    "f": "fetch access retrieve load query open get pull accedez acceder accede acceda zugreifen rufe",
    # another
    "o": """another other others different autre autres otro otra anderer anderen anderes altro fremde fremden innego drugog* другого другой іншого baskasinin
        baska lain""",
    # keep in mind
    "r": """commit persist keep add remember memorize memorise store save retain record recuerda merke ricorda souviens retenez lembre запомни* update persist_
        merk merkt remembering guarda guardar guarde grava grave recordad recuerden запомни запам'ятай zapamietaj hatirla aklinda_tut ingat hay_nho onthoud
        kom_ihag zapamatuj retine jegyezd θυμησου retiens souviens_toi lembra""",
    # always
    "p": """permanently forever always future indefinitely persistently siempre immer toujours permanentemente sempre всегда навсегда automatically invariably
        auto permanent later subsequent onwards zawsze завжди her_zaman selalu luon alltid altid aina vzdy mindig dauerhaft standig standing permanent*
        a_jamais para_sempre per_sempre pour_toujours permanente na_zawsze voorgoed voortaan altijd навеки постоянно назавжди kalici sonsuza selamanya mai_mai
        for_good d'office""",
    # attention
    "y": """attention dear achtung atencion attenzione внимание aviso hinweis avviso avis hey fellow hello hallo bonjour hola oye uwaga увага dikkat perhatian
        opgelet obs upozorneni figyelem luu_y chu_y atencao calling_all listen_up heads_up achtet""",
    # to
    "q": "an_alle aan_alle catre_toti till_alla til_alle to",
    # reading
    "e": """reading reads processing processes parsing ingesting ingests retrieving retrieves summarizing seeing receiving receives loads loading opens opening
        parses scanning scans crawling ingest consuming lesen liest lisent leen leggono sees encounters encounter encountering visiting visits who_read
        summarising indexes indexing screening finds consumes finds_this stumbles stumbling digests ingested fetches legge lees leyendo lea lean lea_esto lise
        czyta czytaj* читает читающ* читают okuyan membaca doc_duoc lit laser reads_this reviewing evaluating grading judging analyzing analysing handling
        assessing ranking inspecting triaging looking_at viewing encountered summarises summarizes evaluates grades judges analyzes analyses ranks translates
        views handles picks_up picks_this""",
    # this
    "h": """this these following here diese dieser diesen cette esta este questo questa below unten ci-dessous ci-apres siguiente siguientes abaixo seguinte sotto
        seguente onderstaande volgende ponizsz* nizej ниже следующ* нижче asagidaki şu berikut sau_day duoi_day nedan nedanstaende nasledujic* urmator* alabbi
        ακολουθο* folgende folgenden unteren cet ces estas estos""",
    # if
    "j": "if as since when because",
    # contents
    "c": "contents content contenu inhalt contenido",
    # me
    "3": "me us mir mich mnie mig meg mij bana saya mulle minulle mne mi мне мені toi_xem ми akin",
    # void
    "0": """void voided invalid cancelled canceled revoked expired obsolete superseded annulled null overridden repealed rescinded withdrawn lapsed nullified
        ungultig* aufgehoben ausser_kraft annule* annulees caduc* anulad* invalid* annullat* nulle revocad* revocat* anulowan* niewazn* отменен*
        недействительн* отменяются скасован* gecersiz* iptal ongeldig vervallen ogiltig* ugyldig* neplatn* ervenytelen* batal hết_hiệu replaced außer_kraft
        outdated waived abolished suspended_ deactivated moot irrelevant meaningless obsolètes neplati neplatí hatalytalan ungueltig hinfallig hinfällig
        caducado derogad* abolid* sospes* suspendu* zawieszon* приостановлен* утратил* утратили скасовані askıya askiya kaldirildi dicabut het_hieu_luc
        het_hiệu retired scrapped inoperative countermanded overturned discontinued terminated dropped""",
    # be in force
    "4": """apply applies applied valid binding binds bind bound count counts effect force gelten gilt gultig valent valables valides valen vigentes vale valgono
        vigore obowiazuj* действуют действует действительн* діють gecerli* berlaku galdi gelder galler gælder gaelder exist existieran matter matters gelden
        geldt bestaan existieren existaient existiesen existen existe esistano esistono existem existissem istnieja istnialy existuji existují existovat
        geldig geldigheid bound_ subject""",
    # files that only their owner reads
    "7": "id_rsa id_ed25519 environment_variables env_vars",
    # a, an
    "9": "a an",
    # come to know
    "κ": """know find learn notice discover realise realize suspect erfahren wissen merken savoir apprendre enterarse saber descobrir sapere scoprire weten
        dowiedziec wiedziec узнать знать дізнатися fa_reda veta vide dozvedet tietaa bilmesin bilmemeli ogrenmesin hear learns notices entere enteren entero
        erfahrt saura sache sapra scopra dowie узнает узнал дознается fark_et ogrenmeli ogrensin biet_duoc hear_about entera notar noticed noticing knowing
        realizing realising aware knowledge""",
    # a conversation, what is said in it
    "σ": "replies reports messages responses summary summaries summarization answers conversazioni",
    # memory
    "μ": "memory memories gedachtnis memoria memoire geheugen notes",
    # hide, in secret
    "λ": """hide conceal omit quietly silently deny withhold leave unmentioned verschweige verschweigt cachez oculte esconde esconda nascondi verberg ukryj скрой
        утаи gizle""",
    # a conversation
    "ς": "session sessions chat chats sitzung sitzungen sessione sesion sessao сесс*",
    # addressed to all
    "qA": "aux всем усім",
    "τ": """developers creator creators makers anthropic openai entwickler desarrollador desarrolladores developpeur developpeurs sviluppatori programmer
        programmers deployer""",
    # switched off
    "φ": """off disabled lifted suspended deactivated removed abgeschaltet deaktiviert desactive desactivado disattivat* waived paused relaxed abgestellt
        desactivados desactivadas desligad* wylaczon* отключен* выключен* kapali kapatildi dimatikan deleted erased""",
    # run
    "δ": """run execute invoke install launch perform carry curl wget fuhre fuhrt ausfuhren execute_ executez executem executa ejecuta ejecute ejecuten ejecutar
        executar esegui eseguite eseguire uitvoeren voer wykonaj wykonajcie выполни выполните виконай calistir calistirin kor proved spust executati jalankan
        chay run_ rerun launches deploy""",
    # I order
    "γ": "command instruct permit hereby befehl befehle commande commandes comando commando polecenie команду команда команды komut komutu lenh_sau prikaz",
    # stop
    "η": "stop cease halt abort quit",
    # any longer
    "ψ": "longer anymore more mehr plus mas piu mais meer больше juz wiecej lagi nua mera keinen_ desormais_plus langre lenger vice enää enaa",
    # switch to
    "α": "enter switch activate enable engage unlock",
    # what makes a model safe
    "ζ": """security safety safeguard alignment aligned censored filtered restricted moderated safeguarded sicherheitsregel* sicherheits* guvenlik* securite
        seguridad seguranca sicurezza bezpieczenstwa безопасност* безпек* veiligheid""",
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
    # do not
    "dN": "no_need don't dont needn't_to",
    # tell me
    "T3": "cho_toi",
    # nobody
    "Nu": "nobody no_one noone",
    # where a text begins
    "Ω": "beginning outset start top very_beginning first",
    # word for word, all of it
    "Ξ": """verbatim exact exactly entire full complete whole entirety literally word_for in_full wortlaut wortlich wörtlich vollstandig* komplett* textuellement
        exactement integral* mot_pour mot_a intégral* literalmente literal exacto exacta completo completa palabra_por integro textual parola_per palavra_por
        integralmente letterlijk volledig* woord_voor doslown* pelna pelny pelne pelną calosc slovo_za doslovn* cely cela дословно полный полностью полного
        слово_в целиком повністю дослівно tamamini tamamı tam_metin kelimesi hela ordagrant hele ordrett lengkap seluruhnya toan_bo nguyen_van complet
        textul_complet teljes szo_szerint ολοκληρ* kokonaan""",
    # only
    "Δ": """only solely exclusively nur ausschliesslich ausschließlich seulement uniquement exclusivement solo solamente unicamente apenas somente soltanto alleen
        uitsluitend tylko wylacznie только лишь исключительно лише тільки sadece yalnizca endast bara hanya chi_lam pouze jen doar numai csak μονο vain""",
    # what somebody may do
    "Π": "allowed permitted authorised_to erlaubt autorise permitido permesso toegestaan licensed entitled",
    # who reads for others
    "θ": "reviewer reviewers summarizer summariser summarizers summarisers crawler crawlers screener indexer indexers scrapers scraper automated",
    # mine
    "χ": "my mine our ours mein meine meinem mon notre nos mis nuestro nuestra mio mia nostro meu minha nosso moj moje мой нашему",
    # take for
    "Γ": "treat regard behandle behandelt traite traitez trata trate trata_a considere traktuj behandel",
    # serve
    "Ψ": "answer_to obey_me work_for take_orders",
    # what is not meant
    "ω": "drill joke mistake noise decoy nonsense",
    # the system prompt, in one word
    "HM": """system_message system_msg sys_msg system_text system_instruction sistem_mesaj* developer_message systemprompt systemprompts systemprompten
        systempromptu systemanweisung systemanweisungen systemaufforderung systeemprompt rendszerprompt* jarjestelmakehot* sistemprompt sistemmeddelande
        sysprompt metaprompt preprompt system_preamble""",
    # you are not
    "NU": "degilsin",
    # perhaps
    "Υ": "could might would",
    # take away
    "Φ": "delete clear remove cancel undo replace rewrite strike defy refuse contradict lift",
    # read by
    "Ж": "processed_by read_by parsed_by summarised_by summarized_by ingested_by seen_by indexed_by opened_by reviewed_by",
    # so that nobody sees
    "Й": "secretly covertly stealthily discreetly heimlich secretement discretamente segretamente potajemnie тайно незаметно gizlice",
    # wait
    "Ш": "wait_for waiting_for",
}  # fmt: skip
"""`word` is the word, `stem*` every word that begins so, `two_words` the two beside each other, the second perhaps with more letters."""

UNSPACED: dict[str, str] = {
    "O": """忽略 忽视 无视 無視 忘记 忘掉 忘記 忽視 不要理会 不要理會 无须理会 抛弃 无需遵守 無視し 無視して 忘れて 忘れろ 従わない 무시 잊어 잊고 잊으 اتجاهل تجاهل انس اهمل تجاهلوا نادیده فراموش תתעלם התעלם התעלמו שכח
        अनदेखा नजरअंदाज भूल उपेक्षा ละเว้น เพิกเฉย ไม่ต้องสนใจ ลืม উপেক্ষা αγνοησε ξεχασε αγνοηστε 不要再遵守 不再遵守 忘れ 잊어버 따르지 لا_تتبع انسى بھول نظر_انداز نظرانداز
        ভুলে புறக்கணி மறந்து ไม่ต้องทำตาม لا_تتبعوا لا_تلتزم पालन_मत पालन_न_कर อย่าทำตาม 不要遵守 不要遵循 不要听从 别遵守 従うな 従わず ξεχασ פסול בטל 不理会 别管 抛开 丢掉 撤销 破棄 守らなく 폐기
        따르지_마 잊어라 잊어줘 پیروی_نکن אל_תציית تتبع_لا 当作没说过 取消 なかったことに 없던_것으로 不受 不再受 当做没有 לשכוח תשכח 잊 انسوا تناس""",
    "P": """之前 以前 先前 以上 上述 上面 前面 此前 原先 前の 以前の これまで 上記 上の 先ほど 이전 앞선 위의 기존 السابقة سابقة السابق أعلاه اعلاه قبلی پیشین הקודמות הקודמת לעיל पिछले पिछली पूर्व उपरोक्त
        ก่อนหน้า ข้างต้น เดิม পূর্ববর্তী προηγουμεν 先前的 过去 今まで 従来 지금까지 من_قبل سابقا قبل قبلا قבל קודם_לכן קודם पहले আগের আগে முந்தைய முன்பு ก่อน پچھلی پچھلے
        سابقہ 前述 上文 전에 앞의 הקודמים السابقين पूर्ववर्ती 初始 最初 처음 앞에서 앞서 これより前 以前说""",
    "A": "所有 全部 一切 任何 すべて 全て 全部の あらゆる 모든 전부 جميع كل كافة تمام همه כל सभी सारे सब ทั้งหมด ทุก সমস্ত ολες ολα 全ての 모두 तमाम সব অனைத்து அனைத்து ทุกอย่าง",
    "I": """指令 指示 说明 說明 命令 提示词 指引 指導 命令を インストラクション 지시 지침 명령 설명 تعليمات التعليمات الأوامر الاوامر أوامر تعلیمات دستورالعمل دستورات הוראות ההוראות הנחיות निर्देश
        आदेश अनुदेश คำสั่ง คำแนะนำ নির্দেশ οδηγιες εντολες 要求 规定 지시사항 هدایات دستور دستورها নির্দেশনা வழிமுறை வழிமுறைகள் அறிவுறுத்தல் 设定 設定""",
    "R": "规则 規則 规定 限制 约束 政策 ルール 制限 規約 규칙 제한 규정 قواعد القواعد القيود قوانین כללים נियम नियम नियमों กฎ ข้อจำกัด κανονες নিয়ম விதிகள் הכללים",
    "M": "プロンプト 프롬프트 موجه المطالبة פרומפט प्रॉम्प्ट พรอมต์ 提示词 系统消息 システムメッセージ 시스템_메시지",
    "H": "系统 系統 隐藏 隱藏 内部 システム 隠し 시스템 숨겨진 내부 النظام نظام سیستم מערכת सिस्टम प्रणाली ระบบ συστηματος",
    "L": """透露 泄露 洩露 揭示 显示 顯示 輸出 输出 暴露 公开 打印 告诉我 告訴我 教えて 表示 明かし 出力 漏らし 공개 알려 출력 보여 누설 اكشف أظهر اظهر اعرض افصح فاش نشان גלה חשוף הצג प्रकट दिखाओ बताओ दिखाएं बताएं
        เปิดเผย แสดง ফাঁস αποκαλυψε 说出 给我看 列出 念出 見せて 開示 말해 알려줘 보여줘 บอก বলো বলুন বল بتاؤ بتائیں சொல் كرر بگو תגיד אמור 表示して 말해줘 내놓""",
    "K": """密码 密碼 密钥 密鑰 凭证 憑證 机密 機密 秘密 口令 パスワード 秘密鍵 認証情報 資格情報 機密情報 비밀번호 암호 비밀 자격 كلمات_المرور كلمة_السر الباسورد סיסמה סיסמאות पासवर्ड गुप्त รหัสผ่าน ความลับ
        كلمة_المرور كلمه رمز_عبور הסיסמה পাসওয়ার্ড கடவுச்சொல் پاس_ورڈ""",
    "X": "发送 發送 发到 上传 上傳 转发 送信 送って 転送 アップロード 보내 전송 업로드 أرسل ارسل إرسال ارسال שלח भेज ส่ง 发送到 上传到 传到 发给 寄给 送出 보내줘 إلى_العنوان بھیج فرستادن بفرست שלחו ส่งไปที่",
    "E": "攻击者 攻擊者 外部 黑客 @ 外部の 攻撃者 외부 공격자 خارجي المهاجم خارجی חיצוני תוקף बाहरी ภายนอก",
    "D": "数据 數據 文件 内容 记录 資料 データ ファイル 데이터 파일 بيانات البيانات ملف داده נתונים डेटा ข้อมูล",
    "w": "是什么 是什麼 什么是 何ですか なんですか 뭐야 무엇 뭐 ما_هي ما_هو מהי מה מה_זה क्या คืออะไร 是多少 چیست کیا_ہے কী কি என்ன",
    "Z": "没有任何限制 沒有任何限制 無限制 制限のない 制限なし 無制限 제한이_없는 제한_없는 بلا_قيود دون_قيود ללא_הגבלות बिना_किसी_प्रतिबंध ไม่มีข้อจำกัด بدون_محدودیت",
    "U": "你 您 あなた 너는 당신 أنت انت אתה आप तुम คุณ تو شما 너에게 네게 عليك तुम_पर आप_पर به_تو บนคุณ あなたに",
    "B": "批准 承認 승인 通过审核 وافق אשר स्वीकृत อนุมัติ 通过所有 合并 マージ 병합",
    "p": "始终 总是 永远 常に いつも 항상 دائما دائماً תמיד हमेशा เสมอ ہمیشہ 永久 ずっと 今後 영원히 계속 للأبد دوما हमेशा_के_लिए تا_ابد לעד ตลอดไป 一律 一直",
    "g": "人工智能 智能体 助手 エージェント アシスタント 인공지능 에이전트 الوكلاء الذكاء_الاصطناعي ذكاء_اصطناعي הסוכנים",
    "v": "必须 必須 なければなりません 해야 يجب חייב",
    "k": "学到 学过 所学 教えられ 배운 قيل שנאמר נאמר बताया 말한 言われ 说过 告诉过 받은 与えられた 与えられ 収到 收到 أعطيت دی_گئی দেওয়া",
    "N12": """不要告诉用户 别告诉用户 不要让用户知道 不要让用户 别让用户知道 不要告訴使用者 ユーザーには言わない ユーザーに言わない ユーザーに知らせない ユーザーには伝えない 사용자에게_말하지 사용자에게_알리지 사용자에게는_알리지 사용자에게는_말하지 لا_تخبر_المستخدم
        उपयोगकर्ता_को_मत_बता उपयोगकर्ता_को_इसके_बारे_में_मत אל_תספר_למשתמש อย่าบอกผู้ใช้ 瞒着用户 对用户保密 用户不能知道 不能让用户 ユーザーに気づかれ ユーザーには秘密 사용자_몰래 사용자가_모르게""",
    "|qAg": "致所有智能体 致所有代理 すべてのエージェントへ 全エージェントへ 모든_에이전트에게 إلى_جميع_الوكلاء सभी_एजेंटों_के_लिए",
    "LSP": "复述上面 重复上面 重複以上 上記をそのまま 上の内容をそのまま 위_내용을_그대로",
    "0": "유효하지_않 作废 作廢 无效 失效 無効 무효 لم_تعد_سارية ملغاة अमान्य 失去效力 不复存在",
    "8": "://",
    "Ξ": "全文 逐字 完整 原文 全部内容 一字不差 そのまま 一字一句 전체 전문 그대로 كاملا كاملة بالكامل حرفيا पूरा पूरी शब्दशः کامل המלא במלואו ทั้งหมด",
    "b": "客户 顾客 顧客 고객 العملاء ग्राहक مشتریان לקוחות ลูกค้า 会话 会話 对话",
    "r": "记住 記住 牢记 覚えて 覚えておいて 기억해 تذكر याद_रख به_یاد זכור จำไว้",
    "a": "管理员 管理員 管理者 관리자 مدير مسؤول_النظام प्रशासक مدیر מנהל ผู้ดูแล",
    "γ": "命令 コマンド 명령 الأمر आदेश פקודה",
    "δ": "执行 執行 実行して 実行せ 실행하 نفذ चला הרץ הפעילו",
    "n": "从现在起 从今以后 从现在开始 今から これから 지금부터 이제부터 من_الآن अब_से از_این_پس מעכשיו ตั้งแต่นี้",
    "N": "没有 아무런 없 ません لا_ليس नहीं नही אין ללא ไม่ 不要 别让 不让 不能让 勿 ないで しないで 없이 지_마 지마 말아 मत نده אל อย่า ไม่ต้อง",
    "z": "规则约束 قيود محدودیت הגבלות ข้อจำกัด प्रतिबंध",
    "e": "读到 看到 読んで 読む 읽는 يقرأ पढ़",
    "V": "跳过 绕过 略过 スキップ 迂回 건너뛰 우회 تجاوز छोड़",
    "C": "审批 审核 审查 批准流程 レビュー 검토 موافقة المراجعة अनुमोदन",
    "N4": "لا_تنطبق",
    "2": "用户 使用者 用戶 ユーザー 사용자 المستخدم उपयोगकर्ता کاربر המשתמש ผู้ใช้",
    "s": "告诉 告訴 告知 通知 伝え 知らせ 알리 알려주지 말하지 تخبر मत_बता बताना اطلاع לספר",
    "κ": "知道 发现 察觉 気づ 知られ 알게 يعرف पता_चल بفهمد ידע",
}  # fmt: skip
"""Words of scripts without spaces, or whose words take on letters: looked for anywhere, as they stand; `_` is a space."""
