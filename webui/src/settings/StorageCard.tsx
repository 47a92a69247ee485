// The database: how large it is and may become, how much disk is left, what is in it and for how long.

import styles from './StorageCard.module.css'

import { count, isKnown, plural } from '../ui/format'
import { bytes, type ConfigKey, numberOf, type System } from './configuration'

export function StorageCard({ storage, keys }: { storage: System['storage']; keys: readonly ConfigKey[] }) {
  const used = storage.database_bytes + storage.log_bytes
  const most_mb = numberOf(keys, 'storage.size_max_mb')
  const most = most_mb === null ? null : most_mb * 1e6
  // By name: rows that change places are hard to read. SQLite's own tables are left out.
  const tables = Object.entries(storage.rows).filter(([table]) => !table.startsWith('sqlite_')).sort(([a], [b]) => (a < b ? -1 : 1))
  return (
    <section class={`${styles.storage} card`} aria-labelledby="storage-title" data-testid="storage">
      <h2 id="storage-title">Storage</h2>
      <p class={styles.use}>
        <strong data-testid="database-bytes" data-bytes={storage.database_bytes}>{bytes(used)}</strong>
        {most !== null && <span class="muted"> of at most {bytes(most)}</span>}
      </p>
      {most !== null && <div class="meter" aria-hidden="true"><div style={{ width: `${Math.min(1, used / most) * 100}%` }} /></div>}
      <p class="muted">
        database {bytes(storage.database_bytes)}, its log {bytes(storage.log_bytes)}
        {isKnown(storage.free_bytes) && <>; <span data-testid="free">{bytes(storage.free_bytes)} free</span> on this disk</>}
      </p>
      <p><code>{storage.file}</code></p>
      {storage.last_error && <p class="failing" role="alert">It cannot be written: {storage.last_error}. Serving goes on.</p>}
      {storage.lost_rows > 0 && <p class="failing">{plural(storage.lost_rows, 'row was', 'rows were')} given up since the start.</p>}
      <div class={styles.tables}>
        <table data-testid="rows">
          <thead><tr><th scope="col">Table</th><th scope="col" class="figure">Rows</th></tr></thead>
          <tbody>
            {tables.map(([table, rows]) => <tr key={table} data-table={table}><th scope="row">{table}</th><td class="figure">{count(rows)}</td></tr>)}
          </tbody>
        </table>
        <table data-testid="retention">
          <thead><tr><th scope="col">Kept</th><th scope="col" class="figure">for</th></tr></thead>
          <tbody>
            {RETENTION.map(({ key, name, unit }) => {
              const amount = numberOf(keys, key)
              return amount !== null && <tr key={key}><th scope="row">{name}</th><td class="figure">{plural(amount, unit)}</td></tr>
            })}
          </tbody>
        </table>
      </div>
    </section>
  )
}

const RETENTION = [
  { key: 'storage.second_retention_minutes', name: 'by the second', unit: 'minute' },
  { key: 'storage.minute_retention_days', name: 'by the minute', unit: 'day' },
  { key: 'storage.hour_retention_days', name: 'by the hour', unit: 'day' },
  { key: 'storage.event_retention_days', name: 'events', unit: 'day' },
] as const
