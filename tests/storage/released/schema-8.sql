PRAGMA application_id = 1701078885;
PRAGMA user_version = 8;
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
        latencies BLOB NOT NULL,
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
        latencies BLOB NOT NULL,
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
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 1, '[8698164,9048602,10450352,14799679,15585069,19783894,21183503,22303189,22583111]', 1795611131113);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-128', 2, '[8698164,9048602,10450352,22218868,25973910,32159149,34220895,35870292,36282641]', 1795611131113);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 2 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 2e0ede4f4ab50e57 858f07a8', 'cpu/0', 'street-160', 1, '[8698164,9048602,14080188,16508784,20598765,22804963,23540362,24128681,24275761]', 1795611131113);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611137313, 1795611137313, '{"slo_ms": 250.0}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611137566, 1795611137566, '{}');
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms, overrides) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"site":null,"pipeline":null,"agent":"edgebox-camera/0.1.0"}', 1795611139523, 1795611139523, '{}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795611137314, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795611137370, 'info', 'bus-stop', 'bus-stop moved from 288 to 320 px: 320x192 px: the link is not measured yet; 352x224 px must wait for that');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795611137500, 'info', 'north-gate', 'north-gate connected from 127.0.0.1');
INSERT INTO history_names (id, camera) VALUES (1, '');
INSERT INTO history_names (id, camera) VALUES (3, 'car-park');
INSERT INTO history_names (id, camera) VALUES (4, 'north-gate');
INSERT INTO history_names (id, camera) VALUES (5, 'bus-stop');
INSERT INTO history_names (id, camera) VALUES (6, 'main-street');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926852, 1, 20972, 45049, 336, 299, 236, 14, 24, 35, 49, 2, 0, 0, 0, 0, 0, 33216, 1003213, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-224":2,"street-192":11,"street-160":5,"street-128":231,"street-288":1}', X'320201010301020401090108010A010C0108010E01080113011301130108010E01080111010C010F010C010F010801020103010101014C020102010401180115010201030102030102010102010301020101010302030102010101050102010301030201010301050102010501090108010501020109010601080102010701080104010B01070106010401080107010701080103010501050202020151020134010D0105010301020103010701030102010401010103010201040107010901040104010201050103010901030102010501040109010901080104010D0108010A010B03020205010401030401350A032002370410061C032D030403200B1C8C01040101040105010701080105010A01020103010401050102010401080106010C010C010C010E0109010F011001110110010E0109010C0106010501020104');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926852, 3, 12009, 11017, 70, 66, 46, 2, 0, 2, 18, 2, 0, 0, 0, 0, 0, 6144, 210357, 1682856, 5159025, 3948381, 13, 102024, 135160, 845097, 430542, '{"street-128":48}', X'400101010101010201040101010601020108010B01070101010201014E01020201050103010102010701020104010401010102010101010202020101010201030101020101030201030401010301010101020101020101015501010E01010101010202020101010101010301030201010401020103010102020301020204010201010101050102013E30B602020202010102010101030103010501020103010301040103010301020104010201020301');
INSERT INTO history_minute (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (29926852, 4, 12009, 11017, 81, 61, 45, 4, 4, 20, 12, 0, 0, 0, 0, 0, 0, 6560, 222833, 1782664, 1469351, 16826429, 13, 174783, 396324, 94386991, 5073752, '{"street-224":1,"street-128":43,"street-160":4,"street-192":1}', X'330103010202010101020104010101010103010101030104010501010104010101030102010302030103520101050104020107010101030105010601010102010102010103030102010102030101010201020102010102010102010201030101040102015209010401010101030101010202010101010101010101030102010301010401010104030103030201010203060101010401472D03049E0101010102010102010103010102020301010101010202010401040202010201070103010401010101010101010202');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 1, 20972, 45049, 336, 299, 236, 14, 24, 35, 49, 2, 0, 0, 0, 0, 0, 33216, 1003213, 0, 0, 0, 0, NULL, NULL, NULL, NULL, '{"street-224":2,"street-192":11,"street-160":5,"street-128":231,"street-288":1}', X'320201010301020401090108010A010C0108010E01080113011301130108010E01080111010C010F010C010F010801020103010101014C020102010401180115010201030102030102010102010301020101010302030102010101050102010301030201010301050102010501090108010501020109010601080102010701080104010B01070106010401080107010701080103010501050202020151020134010D0105010301020103010701030102010401010103010201040107010901040104010201050103010901030102010501040109010901080104010D0108010A010B03020205010401030401350A032002370410061C032D030403200B1C8C01040101040105010701080105010A01020103010401050102010401080106010C010C010C010E0109010F011001110110010E0109010C0106010501020104');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 3, 12009, 11017, 70, 66, 46, 2, 0, 2, 18, 2, 0, 0, 0, 0, 0, 6144, 210357, 1682856, 5159025, 3948381, 13, 102024, 135160, 845097, 430542, '{"street-128":48}', X'400101010101010201040101010601020108010B01070101010201014E01020201050103010102010701020104010401010102010101010202020101010201030101020101030201030401010301010101020101020101015501010E01010101010202020101010101010301030201010401020103010102020301020204010201010101050102013E30B602020202010102010101030103010501020103010301040103010301020104010201020301');
INSERT INTO history_hour (at, name, covered_ms, connected_ms, captured, accepted, on_time, late, mismatches, dropped_sender, dropped_queue, dropped_infeasible, dropped_invalid, dropped_overload, dropped_failed, dropped_departed, dropped_shutdown, width_px_sum, received_bytes, measured_bits, measured_busy_us, estimated_sum_bps, estimated_count, measured_least_bps, estimated_least_bps, measured_most_bps, estimated_most_bps, variants, latencies) VALUES (498780, 4, 12009, 11017, 81, 61, 45, 4, 4, 20, 12, 0, 0, 0, 0, 0, 0, 6560, 222833, 1782664, 1469351, 16826429, 13, 174783, 396324, 94386991, 5073752, '{"street-224":1,"street-128":43,"street-160":4,"street-192":1}', X'330103010202010101020104010101010103010101030104010501010104010101030102010302030103520101050104020107010101030105010601010102010102010103030102010102030101010201020102010102010102010201030101040102015209010401010101030101010202010101010101010101030102010301010401010104030103030201010203060101010401472D03049E0101010102010102010103010102020301010101010202010401040202010201070103010401010101010101010202');
INSERT INTO accuracy_reports (family, variant, content, kind, accuracy, error, source, pictures, measured_at_ms, dominated, details) VALUES ('street', 'street-320', 'c', 'labels', 0.5, 0.01, 'pictures', 10, 1763700000000, '', '{}');
INSERT INTO learned_work (fingerprint, variant, app, work, learned_at_ms) VALUES ('measuring 2 | street 2e0ede4f4ab50e57 858f07a8', 'street-128', 'default', X'B09B14BF32B60DBFF7BA0CBFC2AF0CBF670F0BBF3F0E0BBF8F810ABF3B570ABFEA540ABF9E490ABF66D909BFF2AF09BF317809BFFF6C09BF4D3A09BF2E2309BF437808BF226908BF435B08BF03E007BF446607BF074007BF4F3707BF763007BFBE1707BF351707BF680A07BF6FB706BFEBB106BF6D6E06BF9B2006BFE4CA05BF04A405BFDF1305BFD5F004BFB6D904BF41C104BF7CAE04BFCB5F04BFC3A702BF1D5302BF67E1FFBE0D9CFFBED1D0FABEDDB7F8BE658BF8BE6106F8BEA92AF5BEBA4FF1BE91FBEBBEBCE7E4BEE4B7E4BEA95DD7BE8CE7C8BEE986AABEAD3D9EBE214231BE08572ABE7EE0D1BD9D2D303DD59D5E3D1761BF3E7267253FE1AF293FB152373F56D3473FE53F4E3F9FE35C3FB079643FE61C793F71378B3FAF3B9D3FD4ABA83F3769C23F0B87C93F1D48E23F3CE2E33F0B7EFA3F9331144057542240CEFF2C40E75A4C40676D61404DFA74403880894020598A403E1F91405E069940DB5EA4402FC6A9401BC7B140E9BBB2406425BA400903ED40E9B6FD40AF7E034131DD0F41DE711141A7AA1141B9731341', 1795611151492);
INSERT INTO learned_drift (fingerprint, executor, variant, factor, learned_at_ms) VALUES ('print', 'cpu/0', 'street-320', 1.25, 1763700000000);
INSERT INTO interference (fingerprint, executor, variant, beside, others, neighbours, factor, measured_at_ms) VALUES ('print', 'cpu/0', 'street-320', 'x', 1, 'cpu/1', 1.3, 1763700000000);
