PRAGMA application_id = 1701078885;
PRAGMA user_version = 1;
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
            variants TEXT NOT NULL,
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
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 68c6d6901dd7717e 858f07a8', 'cpu/0', 'street-128', 1, '[2498881,2502520,2538040,2611109,4426001,6402404,6604770,6766664,6807137]', 1795610869921);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 68c6d6901dd7717e 858f07a8', 'cpu/0', 'street-160', 1, '[2940819,2996681,3134287,3144653,6545522,8504396,9025592,9442548,9546787]', 1795610869921);
INSERT INTO profiles (fingerprint, executor, variant, batch_size, quantiles_ns, measured_at_ms) VALUES ('measuring 1 | AMD EPYC, 1 thread | 2 cores | CPUExecutionProvider 1.32.0 | 1 threads | street 68c6d6901dd7717e 858f07a8', 'cpu/0', 'street-192', 1, '[8136777,8295952,8642798,8729620,11862758,14649671,16825098,18565440,19000525]', 1795610869921);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms) VALUES ('bus-stop', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610875311, 1795610875311);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms) VALUES ('car-park', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610875401, 1795610875401);
INSERT INTO cameras (camera, hello, first_seen_ms, last_seen_ms) VALUES ('main-street', '{"app":"default","family":"street","slo_ms":300.0,"rate_hz":8.0,"width_px":1280,"height_px":720,"min_accuracy":0.0,"min_rate_hz":0.0,"agent":"edgebox-camera/0.1.0"}', 1795610875461, 1795610875461);
INSERT INTO metrics_minute (camera, minute_ms, captured, accepted, on_time, late, dropped, latency_ms, mean_px, variants) VALUES ('bus-stop', 1795610870543, 35, 35, 34, 0, '{}', '{"p50":{"network":32.1,"queue":1.24,"inference":5.0,"return":0.54,"total":55.93},"p99":{"network":101.53,"queue":89.61,"inference":50.16,"return":0.54,"total":178.36}}', 2.09882352941176463911e+02, '{"street-192":15,"street-224":19}');
INSERT INTO metrics_minute (camera, minute_ms, captured, accepted, on_time, late, dropped, latency_ms, mean_px, variants) VALUES ('bus-stop', 1795610880000, 59, 59, 59, 0, '{"queue":1}', '{"p50":{"network":39.06,"queue":1.29,"inference":5.44,"return":0.54,"total":63.12},"p99":{"network":112.36,"queue":91.95,"inference":52.56,"return":0.54,"total":193.93}}', 2.0230508474576271282e+02, '{"street-224":19,"street-192":40}');
INSERT INTO metrics_minute (camera, minute_ms, captured, accepted, on_time, late, dropped, latency_ms, mean_px, variants) VALUES ('car-park', 1795610870543, 32, 32, 31, 0, '{}', '{"p50":{"network":78.93,"queue":1.09,"inference":3.21,"return":0.55,"total":116.99},"p99":{"network":194.6,"queue":45.44,"inference":18.55,"return":0.55,"total":224.53}}', 1.68258064516129024921e+02, '{"street-224":3,"street-192":3,"street-160":24,"street-128":1}');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (1, 1795610875311, 'info', 'bus-stop', 'bus-stop connected from 127.0.0.1');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (2, 1795610875311, 'info', 'bus-stop', 'bus-stop moved from 288 to 320 px: 320x192 px: the link is not measured yet; 352x224 px must wait for that');
INSERT INTO events (id, at_ms, level, camera, text) VALUES (3, 1795610875371, 'info', 'north-gate', 'north-gate connected from 127.0.0.1');
