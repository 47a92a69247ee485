// Bringing a model file in: chosen here, checked and rewritten by the box, then served.

import jobStyles from './JobLine.module.css'
import styles from './ImportCard.module.css'

import { useState } from 'preact/hooks'

import { LogInHint } from '../access/LogInHint'
import { messageOf } from '../api/api'
import { FAMILY_NAME, familyNameOf, type Job, latest } from './jobs'
import type { ModelList } from './families'
import { upload } from '../api/upload'
import { JobLine } from './JobLine'

interface ImportCardProps {
  list: ModelList
  jobs: readonly Job[]
  busy: Job | null
  admin: boolean
  onStarted: () => void
}

export function ImportCard({ list, jobs, busy, admin, onStarted }: ImportCardProps) {
  const [file, setFile] = useState<File | null>(null)
  const [name, setName] = useState('')
  const [licence, setLicence] = useState('')
  const [layout, setLayout] = useState('')
  const [sentShare, setSentShare] = useState<number | null>(null)
  const [refusal, setRefusal] = useState('')
  const hint = nameHint(name, list)
  const start = async (event: Event) => {
    event.preventDefault()
    if (!file) return
    setRefusal('')
    setSentShare(0)
    const query = new URLSearchParams({ name, ...(licence && { licence }), ...(layout && { layout }) })
    try {
      await upload(`v1/models?${query}`, file, setSentShare)
    } catch (error) {
      setRefusal(messageOf(error))
    }
    setSentShare(null)
    onStarted()
  }
  return (
    <section class={`${styles.import} card`} aria-labelledby="import-title" data-testid="import">
      <h2 id="import-title">Import a model</h2>
      <p class="muted">
        A detector or classifier as an ONNX file, as it was exported. The box finds out how it is fed and what it says, compares what it will
        serve with the original, measures it, and serves it. Models that are known to work: <code>edgebox models get</code> on the box lists them.
      </p>
      {!admin && <p><LogInHint scope="admin" to="import one" /></p>}
      {admin && (
        <form onSubmit={start}>
          <label>
            <span>ONNX file</span>
            <input
              type="file" accept=".onnx" required
              onChange={({ currentTarget: { files } }) => {
                const first = files?.[0] ?? null
                setFile(first)
                if (first) setName(familyNameOf(first.name))
              }}
            />
          </label>
          <label>
            <span>Name of the family</span>
            <input
              type="text" required value={name} maxLength={64} autocomplete="off" spellcheck={false} autocapitalize="none"
              aria-invalid={name !== '' && hint !== ''} aria-describedby="import-name-hint" onInput={(event) => setName(event.currentTarget.value)}
            />
            <small id="import-name-hint" class={name !== '' && hint ? styles.hint : 'muted'}>{hint || 'Cameras ask for it by this name.'}</small>
          </label>
          <label>
            <span>Licence</span>
            <input type="text" value={licence} maxLength={200} autocomplete="off" spellcheck={false} onInput={(event) => setLicence(event.currentTarget.value)} />
            <small class="muted">Empty: what the file says of it.</small>
          </label>
          <label>
            <span>Layout</span>
            <input type="text" value={layout} maxLength={64} autocomplete="off" spellcheck={false} autocapitalize="none" onInput={(event) => setLayout(event.currentTarget.value.trim())} />
            <small class="muted">Empty: found out. The box says so where it cannot.</small>
          </label>
          <button type="submit" disabled={!file || hint !== '' || busy !== null || sentShare !== null}>Import</button>
        </form>
      )}
      {sentShare !== null && (
        <div class={jobStyles.job} role="status"><progress max={1} value={sentShare} aria-label="Sending the file" /><span>Sending {file?.name}</span></div>
      )}
      {refusal && <p class={jobStyles.failed} role="alert">{refusal}</p>}
      {admin && sentShare === null && !refusal && <JobLine job={latest(jobs, 'import')} />}
    </section>
  )
}

function nameHint(name: string, list: ModelList): string {
  if (!FAMILY_NAME.test(name)) return 'Small letters, digits, dots, dashes and underscores, 64 at most'
  return list.families.some((family) => family.name === name) ? 'There is a family of this name already.' : ''
}
