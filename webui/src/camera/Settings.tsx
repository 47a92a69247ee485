// What a person sets for a camera on the box: saved at once, in the box's own words where refused, and undone.

import page from './Camera.module.css'
import styles from './Settings.module.css'

import { useState } from 'preact/hooks'

import { messageOf, request } from '../api/api'
import { before, FIELDS, fieldOf, patchOf, standing, textOf, typedSince, type CameraDocument, type Draft, type FieldWords, type Patch } from './cameraOverrides'

interface SettingsProps {
  known: CameraDocument
  connected: boolean
  /** The names of the pipelines that the box offers. */
  pipelines?: readonly string[]
  /** The names of the model families that the box offers. */
  families?: readonly string[]
  onChanged: (changed: CameraDocument) => void
}

interface Outcome {
  message: string
  failed: boolean
  /** The settings that were sent, as they were before. */
  before?: Patch
}

export function Settings({ known, connected, pipelines = [], families = [], onChanged }: SettingsProps) {
  const [draft, setDraft] = useState<Draft>({})
  const [outcome, setOutcome] = useState<Outcome | null>(null)
  const [saving, setSaving] = useState(false)
  const patch = patchOf(draft, known.overrides)
  const changed = Object.keys(patch).length > 0
  const refused = outcome?.failed ? fieldOf(outcome.message) : null

  async function send(body: Patch, message: string, undo: boolean): Promise<void> {
    setSaving(true)
    const sent = draft
    try {
      const changed = await request('PATCH /v1/cameras/{id}', { path: { id: known.id }, body })
      setDraft((now) => typedSince(sent, now))
      setOutcome({ message, failed: false, ...(undo && { before: before(body, known.overrides) }) })
      onChanged(changed)
    } catch (error) {
      setOutcome({ message: messageOf(error), failed: true })
    } finally {
      setSaving(false)
    }
  }

  const save = (event: Event) => {
    event.preventDefault()
    if (changed && !saving) void send(patch, connected ? 'Saved: it holds from the next frame on.' : 'Saved for its return.', true)
  }
  return (
    <section class={`${styles.card} card`} aria-labelledby="settings-title">
      <h2 id="settings-title">Settings <span class="muted">on the box; they go before all others</span></h2>
      <form onSubmit={save} noValidate>
        {FIELDS.filter(({ field }) => field !== 'pipeline' || pipelines.length > 0 || known.overrides.pipeline !== null).map((words) => (
          <Setting
            key={words.field}
            words={words}
            choices={words.field === 'pipeline' ? pipelines : words.field === 'family' ? families : null}
            known={known}
            typed={draft[words.field]}
            refusal={refused === words.field ? (outcome?.message ?? null) : null}
            onType={(text) => setDraft((now) => ({ ...now, [words.field]: text }))}
            onReset={() => {
              const { [words.field]: _, ...rest } = draft
              setDraft(rest)
              if (known.overrides[words.field] !== null) void send({ [words.field]: null }, `${words.name} is reset: ${standing(known, words.field)}.`, true)
            }}
          />
        ))}
        <div class={styles.end}>
          <button type="submit" class={page.primary} disabled={!changed || saving}>Save</button>
          <p role="status" class={outcome?.failed ? page.refused : 'muted'} data-testid="saved">
            {outcome && refused === null ? outcome.message : ''}{' '}
            {outcome?.before && <button type="button" onClick={() => void send(outcome.before ?? {}, 'Undone.', false)}>Undo</button>}
          </p>
        </div>
      </form>
    </section>
  )
}

interface SettingProps {
  words: FieldWords
  /** The names to choose from; null: any text. */
  choices: readonly string[] | null
  known: CameraDocument
  typed: string | undefined
  refusal: string | null
  onType: (text: string) => void
  onReset: () => void
}

function Setting({ words: { field, name, unit, hint, numeric }, choices, known, typed, refusal, onType, onReset }: SettingProps) {
  const set = known.overrides[field] !== null
  const value = typed ?? textOf(known.overrides[field])
  return (
    <div class={styles.setting}>
      <label for={`setting-${field}`}>{name} {unit && <span class="muted">{unit}</span>}</label>
      {choices ? (
        <select
          id={`setting-${field}`} value={value} aria-invalid={refusal !== null} aria-describedby={`setting-${field}-hint`}
          onChange={(event) => onType(event.currentTarget.value)}
        >
          <option value="">{standing(known, field)}</option>
          {[...new Set([...choices, ...(value ? [value] : [])])].map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      ) : <input
        id={`setting-${field}`} type="text" inputMode={numeric ? 'decimal' : 'text'} autocomplete="off" spellcheck={false} autocapitalize="none"
        value={value} placeholder={standing(known, field)} aria-invalid={refusal !== null} aria-describedby={`setting-${field}-hint`}
        onInput={(event) => onType(event.currentTarget.value)}
      />}
      <button type="button" disabled={!set && typed === undefined} onClick={onReset} aria-label={`Reset ${name.toLowerCase()} to ${standing(known, field)}`}>Reset</button>
      <small id={`setting-${field}-hint`} class={refusal === null ? 'muted' : page.refused} role={refusal === null ? undefined : 'alert'}>
        {refusal ?? (set ? `${hint}. Without this setting: ${standing(known, field)}` : hint)}
      </small>
    </div>
  )
}
