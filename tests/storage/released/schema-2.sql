PRAGMA application_id = 1701078885;
PRAGMA user_version = 2;
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
        ) WITHOUT ROWID;
CREATE TABLE metrics_minute (
            camera TEXT NOT NULL,
            minute_ms INTEGER NOT NULL,
            captured INTEGER NOT NULL,
            accepted INTEGER NOT NULL,
            on_time INTEGER NOT NULL,
            late INTEGER NOT NULL,
            dropped TEXT NOT NULL,
            latency_ms TEXT NOT NULL,
            mean_px REAL,
            variants TEXT NOT NULL, mismatches INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (camera, minute_ms)
        ) WITHOUT ROWID;
CREATE INDEX metrics_minute_by_time ON metrics_minute (minute_ms);
CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            at_ms INTEGER NOT NULL,
            level TEXT NOT NULL,
            camera TEXT,
            text TEXT NOT NULL
        );
CREATE INDEX events_by_time ON events (at_ms);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 6ade6e26135c5b64 858f07a8', 'cpu/0', 'street-128', 1, '[2507314,2545841,2665464,5824203,9111208,11050426,12388559,13459065,13726692]', 1795611376034);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 6ade6e26135c5b64 858f07a8', 'cpu/0', 'street-160', 1, '[2924334,2937611,3043315,5824203,9111208,11050426,12388559,13459065,13726692]', 1795611376034);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 6ade6e26135c5b64 858f07a8', 'cpu/0', 'street-192', 1, '[4384890,4704080,6133018,8592075,12802475,14527183,19123178,22799973,23719172]', 1795611376034);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795611383519, 1795611383519);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795611383664, 1795611383664);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795611383605, 1795611383605);
INSERT INTO metrics_minute (camera, minute_ms, captured, accepted, on_time, late, dropped, latency_ms, mean_px, variants, mismatches) VALUES ('bus-stop', 1795611377965, 89, 76, 62, 3, '{"queue":20,"infeasible":1,"sender":3}', '{"p50":{"network":40.78,"queue":6.14,"inference":3.09,"return":0.32,"total":84.57},"p99":{"network":262.22,"queue":214.5,"inference":150.74,"return":1.73,"total":328.63}}', 1.57538461538461547206e+02, '{"street-256":1,"street-128":36,"street-160":15,"street-288":5,"street-192":8}', 10);
INSERT INTO metrics_minute (camera, minute_ms, captured, accepted, on_time, late, dropped, latency_ms, mean_px, variants, mismatches) VALUES ('car-park', 1795611377965, 78, 74, 71, 1, '{"queue":3,"sender":3}', '{"p50":{"network":84.34,"queue":3.43,"inference":2.95,"return":0.23,"total":124.58},"p99":{"network":232.25,"queue":183.42,"inference":60.21,"return":0.23,"total":303.14}}', 1.38666666666666657189e+02, '{"street-224":1,"street-192":1,"street-128":51,"street-160":19}', 4);
INSERT INTO metrics_minute (camera, minute_ms, captured, accepted, on_time, late, dropped, latency_ms, mean_px, variants, mismatches) VALUES ('main-street', 1795611377965, 84, 69, 51, 0, '{"queue":28,"infeasible":2,"sender":3}', '{"p50":{"network":29.01,"queue":1.94,"inference":3.33,"return":2.33,"total":41.55},"p99":{"network":103.78,"queue":213.22,"inference":134.45,"return":2.65,"total":264.9}}', 1.73176470588235304143e+02, '{"street-256":1,"street-288":12,"street-160":6,"street-128":31,"street-192":1}', 3);
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795611383519, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795611383519, 'info', 'north-gate', 'north-gate connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795611383520, 'info', 'bus-stop', 'bus-stop moved from 288 to 320 px: 320x192 px: the link is not measured yet; 352x224 px must wait for that');
