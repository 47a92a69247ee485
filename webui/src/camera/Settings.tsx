// What a person sets for a camera on the box: saved at once, in the box's own words where refused, and undone.

import page from './Camera.module.css'
import styles from './Settings.module.css'

import { useEffect, useState } from 'preact/hooks'

import { LogInHint } from '../access/LogInHint'
import { useMay } from '../access/session'
import { inWords, messageOf, request } from '../api/api'
import { ChangedMeanwhile, isChangedMeanwhile } from './ChangedMeanwhile'
import { type Base, baseOf, before, FIELDS, fieldOf, idOf, nowWords, patchOf, standing, textOf, typedSince, type CameraDocument, type Draft, type FieldWords, type Patch } from './cameraOverrides'

interface SettingsProps {
  known: CameraDocument
  connected: boolean
  /** The setting that whoever came here wants to change. */
  wanted?: string | undefined
  /** The names of the pipelines that the box offers. */
  pipelines?: readonly string[]
  /** The names of the model families that the box offers. */
  families?: readonly string[]
  onChanged: (changed: CameraDocument) => void
}

interface Outcome {
  message: string
  failed: boolean
  /** The fields that were not saved because somebody else changed them meanwhile. */
  meanwhile?: readonly string[]
  /** The settings that were sent, as they were before, and what changes them back. */
  undo?: { patch: Patch; base: Base }
}

const NAMES = Object.fromEntries(FIELDS.map(({ field, name }) => [field, name]))

export function Settings({ known, connected, wanted, pipelines = [], families = [], onChanged }: SettingsProps) {
  const may = useMay('operator')
  const [draft, setDraft] = useState<Draft>({})
  const [base, setBase] = useState<Base>({})
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const [saving, setSaving] = useState(false)
  useEffect(() => {
    const field = FIELDS.find(({ field }) => field === wanted)?.field
    if (field) document.getElementById(idOf(field))?.focus()
  }, [wanted])
  const patch = patchOf(draft, known.overrides)
  const changed = Object.keys(patch).length > 0
  const drawn = FIELDS.filter(({ field }) => field !== 'pipeline' || pipelines.length > 0 || known.overrides.pipeline !== null)
  const refused = outcome?.failed && !outcome.meanwhile ? fieldOf(outcome.message, drawn) : null

  async function send(patch: Patch, base: Base, message: string, undo: boolean): Promise<void> {
    setSaving(true)
    const sent = draft
    try {
      const changed = await request('PATCH /v1/cameras/{id}', { path: { id: known.id }, body: { ...patch, base } })
      const after = baseOf(patch, {}, changed)
      setDraft((now) => typedSince(sent, now))
      setBase((now) => ({ ...now, ...after }))
      setOutcome({ message, failed: false, ...(undo && { undo: { patch: before(patch, known.overrides), base: after } }) })
      onChanged(changed)
    } catch (error) {
      setOutcome({ message: messageOf(error), failed: true, ...(isChangedMeanwhile(error) && { meanwhile: Object.keys(patch) }) })
    } finally {
      setSaving(false)
    }
  }

  const loaded = (now: CameraDocument) => {
    const kept = Object.keys(draft).length > 0 ? ' What you typed is kept: Save puts it in its place.' : ''
    setBase(now.versions)
    setOutcome({ message: nowWords(outcome?.meanwhile ?? [], now) + kept, failed: false })
    onChanged(now)
  }
  const save = (event: Event) => {
    event.preventDefault()
    if (changed && !saving) void send(patch, baseOf(patch, base, known), connected ? 'Saved: it holds from the next frame on.' : 'Saved for its return.', true)
  }
  return (
    <section class={`${styles.card} card`} aria-labelledby="settings-title">
      <h2 id="settings-title">Settings <span class="muted">what is set here overrides what the camera asks</span></h2>
      <form onSubmit={save} noValidate>
        {!may && <p><LogInHint scope="operator" to="change them" /></p>}
        {drawn.map((words) => (
          <Setting
            key={words.field}
            words={words}
            choices={words.field === 'pipeline' ? pipelines : words.field === 'family' ? families : null}
            known={known}
            may={may}
            typed={draft[words.field]}
            refusal={refused === words.field && outcome ? inWords(outcome.message, NAMES) : null}
            onType={(text) => {
              if (draft[words.field] === undefined) setBase((now) => ({ ...now, [words.field]: known.versions[words.field] }))
              setDraft((now) => ({ ...now, [words.field]: text }))
            }}
            onReset={() => {
              const { [words.field]: _, ...rest } = draft
              setDraft(rest)
              const patch = { [words.field]: null }
              if (known.overrides[words.field] !== null) void send(patch, baseOf(patch, {}, known), `${words.name} is reset: ${standing(known, words.field)}.`, true)
            }}
          />
        ))}
        {may && (
          <div class={styles.end}>
            <button type="submit" class={page.primary} disabled={!changed || saving}>Save</button>
            <p role="status" class={outcome?.failed ? page.refused : 'muted'} data-testid="saved">
              {outcome?.meanwhile ? <ChangedMeanwhile camera={known.id} message={outcome.message} onLoaded={loaded} /> : outcome && refused === null ? inWords(outcome.message, NAMES) : ''}{' '}
              {outcome?.undo && <button type="button" onClick={() => outcome.undo && void send(outcome.undo.patch, outcome.undo.base, 'Undone.', false)}>Undo</button>}
            </p>
          </div>
        )}
      </form>
    </section>
  )
}

interface SettingProps {
  words: FieldWords
  /** The names to choose from; null: any text. */
  choices: readonly string[] | null
  known: CameraDocument
  /** Whether who uses the page may change it. */
  may: boolean
  typed: string | undefined
  refusal: string | null
  onType: (text: string) => void
  onReset: () => void
}

function Setting({ words: { field, name, unit, hint, numeric }, choices, known, may, typed, refusal, onType, onReset }: SettingProps) {
  const set = known.overrides[field] !== null
  const value = typed ?? textOf(known.overrides[field])
  return (
    <div class={styles.setting}>
      <label for={idOf(field)}>{name} {unit && <span class="muted">{unit}</span>}</label>
      {choices ? (
        <select
          id={idOf(field)} value={value} disabled={!may} aria-invalid={refusal !== null} aria-describedby={`${idOf(field)}-hint`}
          onChange={(event) => onType(event.currentTarget.value)}
        >
          <option value="">{standing(known, field)}</option>
          {[...new Set([...choices, ...(value ? [value] : [])])].map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      ) : <input
        id={idOf(field)} type="text" inputMode={numeric ? 'decimal' : 'text'} autocomplete="off" spellcheck={false} autocapitalize="none"
        value={value} disabled={!may} placeholder={standing(known, field)} aria-invalid={refusal !== null} aria-describedby={`${idOf(field)}-hint`}
        onInput={(event) => onType(event.currentTarget.value)}
      />}
      {may && <button type="button" disabled={!set && typed === undefined} onClick={onReset} aria-label={`Reset ${name.toLowerCase()} to ${standing(known, field)}`}>Reset</button>}
      <small id={`${idOf(field)}-hint`} class={refusal === null ? 'muted' : page.refused} role={refusal === null ? undefined : 'alert'}>
        {refusal ?? (set ? `${hint}. Without this setting: ${standing(known, field)}` : hint)}
      </small>
    </div>
  )
}
