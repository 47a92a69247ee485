PRAGMA application_id = 1701078885;
PRAGMA user_version = 11;
CREATE TABLE profiles (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            batch_size INTEGER NOT NULL,
            quantiles_ns TEXT NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, batch_size)
        ) WITHOUT ROWID;
CREATE TABLE cameras (
            camera TEXT PRIMARY KEY,
            hello TEXT NOT NULL,
            first_seen_ms INTEGER NOT NULL,
            last_seen_ms INTEGER NOT NULL
        , overrides TEXT NOT NULL DEFAULT '{}') WITHOUT ROWID;
CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            at_ms INTEGER NOT NULL,
            level TEXT NOT NULL,
            camera TEXT,
            text TEXT NOT NULL
        );
CREATE INDEX events_by_time ON events (at_ms);
CREATE TABLE history_names (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    camera TEXT NOT NULL UNIQUE
);
CREATE TABLE history_minute (
        at INTEGER NOT NULL,
        name INTEGER NOT NULL,
        covered_ms INTEGER NOT NULL, connected_ms INTEGER NOT NULL, captured INTEGER NOT NULL, accepted INTEGER NOT NULL, on_time INTEGER NOT NULL, late INTEGER NOT NULL, mismatches INTEGER NOT NULL, dropped_sender INTEGER NOT NULL, dropped_queue INTEGER NOT NULL, dropped_infeasible INTEGER NOT NULL, dropped_invalid INTEGER NOT NULL, dropped_overload INTEGER NOT NULL, dropped_failed INTEGER NOT NULL, dropped_departed INTEGER NOT NULL, dropped_shutdown INTEGER NOT NULL, width_px_sum INTEGER NOT NULL, received_bytes INTEGER NOT NULL, measured_bits INTEGER NOT NULL, measured_busy_us INTEGER NOT NULL, estimated_sum_bps INTEGER NOT NULL, estimated_count INTEGER NOT NULL,
        measured_least_bps INTEGER,
        estimated_least_bps INTEGER,
        measured_most_bps INTEGER,
        estimated_most_bps INTEGER,
        variants TEXT NOT NULL,
        latencies BLOB NOT NULL, tracked TEXT NOT NULL DEFAULT '{}',
        PRIMARY KEY (at, name)
    ) WITHOUT ROWID;
CREATE TABLE history_hour (
        at INTEGER NOT NULL,
        name INTEGER NOT NULL,
        covered_ms INTEGER NOT NULL, connected_ms INTEGER NOT NULL, captured INTEGER NOT NULL, accepted INTEGER NOT NULL, on_time INTEGER NOT NULL, late INTEGER NOT NULL, mismatches INTEGER NOT NULL, dropped_sender INTEGER NOT NULL, dropped_queue INTEGER NOT NULL, dropped_infeasible INTEGER NOT NULL, dropped_invalid INTEGER NOT NULL, dropped_overload INTEGER NOT NULL, dropped_failed INTEGER NOT NULL, dropped_departed INTEGER NOT NULL, dropped_shutdown INTEGER NOT NULL, width_px_sum INTEGER NOT NULL, received_bytes INTEGER NOT NULL, measured_bits INTEGER NOT NULL, measured_busy_us INTEGER NOT NULL, estimated_sum_bps INTEGER NOT NULL, estimated_count INTEGER NOT NULL,
        measured_least_bps INTEGER,
        estimated_least_bps INTEGER,
        measured_most_bps INTEGER,
        estimated_most_bps INTEGER,
        variants TEXT NOT NULL,
        latencies BLOB NOT NULL, tracked TEXT NOT NULL DEFAULT '{}',
        PRIMARY KEY (at, name)
    ) WITHOUT ROWID;
CREATE TABLE "accuracy_reports" (
            family TEXT NOT NULL,
            variant TEXT NOT NULL,
            content TEXT NOT NULL,
            kind TEXT NOT NULL,
            accuracy REAL NOT NULL,
            error REAL NOT NULL,
            source TEXT NOT NULL,
            pictures INTEGER NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            dominated TEXT NOT NULL,
            details TEXT NOT NULL,
            PRIMARY KEY (family, variant)
        ) WITHOUT ROWID;
CREATE TABLE learned_work (
            fingerprint TEXT NOT NULL,
            variant TEXT NOT NULL,
            app TEXT NOT NULL,
            work BLOB NOT NULL,
            learned_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, variant, app)
        ) WITHOUT ROWID;
CREATE TABLE learned_drift (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            factor REAL NOT NULL,
            learned_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant)
        ) WITHOUT ROWID;
CREATE TABLE interference (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            beside TEXT NOT NULL,
            others INTEGER NOT NULL,
            neighbours TEXT NOT NULL,
            factor REAL NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, beside, others)
        ) WITHOUT ROWID;
CREATE TABLE core_factors (
            fingerprint TEXT NOT NULL,
            executor TEXT NOT NULL,
            variant TEXT NOT NULL,
            batch_size INTEGER NOT NULL,
            threads INTEGER NOT NULL,
            factor REAL NOT NULL,
            measured_at_ms INTEGER NOT NULL,
            PRIMARY KEY (fingerprint, executor, variant, batch_size, threads)
        ) WITHOUT ROWID;
CREATE TABLE cascade_evidence (
            camera TEXT PRIMARY KEY,
            decider TEXT NOT NULL,
            hard BLOB NOT NULL,
            easy BLOB NOT NULL,
            logits BLOB NOT NULL,
            recorded_at_ms INTEGER NOT NULL
        ) WITHOUT ROWID;
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 1, '[3468755,4410275,8176356,14532641,19502172,27727293,30469000,32662366,33210707]', 1795611318425);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-160', 1, '[4043041,5884866,13252165,20476443,28608373,35325404,37564414,39355622,39803424]', 1795611318425);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-192', 1, '[7365338,8599979,13538541,20476443,32696666,54175806,61335519,67063289,68495232]', 1795611318425);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611325048, 1795611325048, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611325049, 1795611325049, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611324643, 1795611324643, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795611324643, 'info', 'main-street', 'main-street connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795611324651, 'info', 'main-street', 'main-street moved from 192 to 256 px: 256x160 px: the link is not measured yet; 288x192 px must wait for that');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795611325048, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (3, 'car-park');
INSERT INTO history_names (id, camera) VALUES (4, 'north-gate');
INSERT INTO history_names (id, camera) VALUES (5, 'main-street');
INSERT INTO history_names (id, camera) VALUES (6, 'bus-stop');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (29926855, 1, 19685, 46054, 369, 369, 343, 5, 200, 0, 21, 0, 0, 0, 0, 0, 0, 54880, 1988088, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-256":18,"street-192":95,"street-128":174,"street-160":61}', X'2C01030204010201010201060104010701070109011201180111011001190111011501160110011A010F0116010F010D011101080107010201030101010201014D030106010F01150104010601060105010201050102010201060103010203040103010401010105010301040104010301030106010301050107010501020106010401060107010A01080107010A010B010B010E010B010E010A010F010E0113010C0107020252040117011901120106010701060127010D010B010D010C01040105010801030107010C010701060110010F010A010A0113010A01060107010501030105010201040104010201013E3E0314012B061406060210073A03610A1A8B0101010403010501020105010601090102010901080107010C010B010F0109010F010E01120116011801140118012301230114010A01040102', '{}');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (29926855, 3, 12991, 12024, 90, 90, 84, 1, 39, 0, 5, 0, 0, 0, 0, 0, 0, 11712, 327165, 2617320, 6099507, 4957904, 12, 241206, 353379, 733081, 490036, '{"street-192":8,"street-160":10,"street-128":67}', X'43040103010C0106010A010A0107010D01060107010101030101010101014D020102010501030202020102030303010206020101010102020101010101020103010301010104010101010102010101010102010101020102010101010103010201030107010201030205010155020107010C0106010101030103010501030103010101020101020201010204010101040105010301030104010303010201010201010301432B061406060210AC010101010301040102010301040106010601080104010601080107010C010501030102', '{}');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (29926855, 4, 11983, 11016, 90, 90, 84, 1, 57, 0, 5, 0, 0, 0, 0, 0, 0, 14112, 581064, 4648512, 1635084, 33656632, 11, 428144, 846144, 141457540, 8403161, '{"street-192":28,"street-160":17,"street-128":33,"street-256":7}', X'2C010302070101010101010201010101010701050106010901080104010701070102010301050104010101020103010102015201010301040101010201040201010203020202030205010101010105010102010202020101010301030102010201020102010301010103010201020101010601050107010401010201520201050106010201010102010201090103010401030102020201010101010201030305010101020101010401060101010601030201010101010101010101014114163A0307950101010401010202010101010201010102010202020102010401030106010201060104010401060103010B0109010601020201', '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (498780, 1, 19685, 46054, 369, 369, 343, 5, 200, 0, 21, 0, 0, 0, 0, 0, 0, 54880, 1988088, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-256":18,"street-192":95,"street-128":174,"street-160":61}', X'2C01030204010201010201060104010701070109011201180111011001190111011501160110011A010F0116010F010D011101080107010201030101010201014D030106010F01150104010601060105010201050102010201060103010203040103010401010105010301040104010301030106010301050107010501020106010401060107010A01080107010A010B010B010E010B010E010A010F010E0113010C0107020252040117011901120106010701060127010D010B010D010C01040105010801030107010C010701060110010F010A010A0113010A01060107010501030105010201040104010201013E3E0314012B061406060210073A03610A1A8B0101010403010501020105010601090102010901080107010C010B010F0109010F010E01120116011801140118012301230114010A01040102', '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (498780, 3, 12991, 12024, 90, 90, 84, 1, 39, 0, 5, 0, 0, 0, 0, 0, 0, 11712, 327165, 2617320, 6099507, 4957904, 12, 241206, 353379, 733081, 490036, '{"street-192":8,"street-160":10,"street-128":67}', X'43040103010C0106010A010A0107010D01060107010101030101010101014D020102010501030202020102030303010206020101010102020101010101020103010301010104010101010102010101010102010101020102010101010103010201030107010201030205010155020107010C0106010101030103010501030103010101020101020201010204010101040105010301030104010303010201010201010301432B061406060210AC010101010301040102010301040106010601080104010601080107010C010501030102', '{}');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies, tracked) VALUES (498780, 4, 11983, 11016, 90, 90, 84, 1, 57, 0, 5, 0, 0, 0, 0, 0, 0, 14112, 581064, 4648512, 1635084, 33656632, 11, 428144, 846144, 141457540, 8403161, '{"street-192":28,"street-160":17,"street-128":33,"street-256":7}', X'2C010302070101010101010201010101010701050106010901080104010701070102010301050104010101020103010102015201010301040101010201040201010203020202030205010101010105010102010202020101010301030102010201020102010301010103010201020101010601050107010401010201520201050106010201010102010201090103010401030102020201010101010201030305010101020101010401060101010601030201010101010101010101014114163A0307950101010401010202010101010201010102010202020102010401030106010201060104010401060103010B0109010601020201', '{}');
INSERT INTO accuracy_reports (family, variant, content, kind, accuracy, error, source, pictures, measured_at_ms, dominated, details) VALUES ('street', 'street-320', 'c', 'labels', 0.5, 0.01, 'pictures', 10, 1763700000000, '', '{}');
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-128', 'default', X'285C5E3E2E7B603E7ADC643E8C6E6B3E787A6B3EE8806E3EBE69723E1F98743E9AAD763EC021773ED490793EA4C8793ED5E2793EF7117B3ECEB37D3E35CA7D3E85177F3E20FB7F3EE60F803EAB32803EDEA2803E16D5803EC491813EA398813E9BD5813ED6A0823EB74E833E2A97833E1E8D843E152D853EAA03883E691B893E8EBD8E3EAA17913E96F5973E2AFF973E8E51A23E5A5DA43EAD3DA83EA5C1A83E5776AC3E1DDFAC3EDF48B43E6D61BA3E9A09C13E114EC13EB116CD3E3C79D83EB8BFED3E2DD6EF3EFCCAF93EE0F1FC3ECC17033F36D9073FDDF60B3F1E710C3FD177113FA917143FDC481E3FADA1223F10D0513F1925583F670A893F85348A3F9FED8A3FC5588B3F4EA18F3FEE14913F3A0E993FF20F9D3FDDDDA73F83FAAD3F9F9AAF3F3D85B33FB9CEB73FB235B83F464DBC3F02DDC03F769EC43F1153C53F6A10C63F124CC93F27A4CF3FD8E8D23FD787D33F4E8CD63F105CE33F0B5EE43F63FEE43F6748F63F463DFA3F17E40840CA19094022E20B40B5492940AB2D3640426B3640B6D27940A2A2A540ADC8C340', 1795611337318);
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-160', 'default', X'97D8493E9C0A4A3EC8A84C3E5A434F3EA43A523E9547523E7020573E0DA1643E5E669B3E0F72AE3EB3A4B43EE959D23E860EE33E8DA2F73ED459033FC6630B3F51210D3F2D500D3F26E4183FF79A2F3F297C823FDB06833FE802843F0A6B883FE10D8A3F9C54A03FB922A43F631CAA3F4052AD3F3E02BA3F5E24C13FDFCEC93FD0F7D43F0892EF3F16D5F93FB451FB3F9D5613403DC026402C5A2C40B3684840C4CC53407CA16440', 1795611337093);
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-192', 'default', X'DAD9913EE4E2913E23EA913EB546923E44FA923E11FC923EDD2F933E0459933E895E933E41A8933E55BF933E98DD933EBEE3933E5B45953ED4C0953E60D9953EB5BA963E72DA963E91EB963E1419973E1876973EA6CD983ED433993E5B37993EACCA993E465F9A3EDBC39A3E11BF9C3E04F49C3EAE7A9E3ED9A89E3EF1C89F3E1496A03E616EA13E44CBA13E2DF3A23EEB00A53E67BDAA3E4953AE3EF895B63EF0E1B63EA90CBE3EE8D9C23E822AC83E7381CD3E9A34E93EE9D9EA3E70D6F33E733F003FADDD0B3F3008213F803B313F20EA313FAFE7343F59053D3F839C3D3FF3C7553F4FA18A3F6A728F3FC91EAB3F5D0BBA3FAE13BF3FC216C13F839FC43F07B7C63F9799CA3F916FCD3FB29CD03F9082D93F423BDE3FEBA2E13F6639F23F6EB4F83F193D17400443194019995A402D497B40', 1795611337326);
INSERT INTO learned_drift (fingerprint, executor, variant, factor, learned_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1.25, 1763700000000);
INSERT INTO interference (fingerprint, executor, variant, beside, others, neighbours, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 'x', 1, 'cpu/1', 1.3, 1763700000000);
INSERT INTO core_factors (fingerprint, executor, variant, batch_size, threads, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1, 2, 0.6, 1763700000000);
INSERT INTO cascade_evidence (camera, decider, hard, easy, logits, recorded_at_ms) VALUES ('bus-stop', 'street-160', X'0000000000000000', X'0000000000000000', X'0000000000000000', 1763700000000);
