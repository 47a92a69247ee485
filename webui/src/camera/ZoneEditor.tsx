// Zones and lines of a camera: listed with what is counted, drawn over the picture by mouse or keyboard, saved and removed.

import page from './Camera.module.css'
import styles from './ZoneEditor.module.css'

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import { LogInHint } from '../access/LogInHint'
import { useMay } from '../access/session'
import { messageOf, request } from '../api/api'
import type { Camera } from '../api/types'
import { crossingsInWords, inWords, type Point } from '../live/zones'
import { ChangedMeanwhile, isChangedMeanwhile } from './ChangedMeanwhile'
import type { CameraDocument } from './cameraOverrides'
import { added, type Change, without, type Kind, pointsText, POINTS_MIN, type Shapes } from './drawing'

/** The field for the name of what is drawn. */
export const NAME_ID = 'drawn-name'

interface ZoneEditorProps {
  camera: Camera
  known: CameraDocument
  drawing: Drawing
  onChanged: (changed: CameraDocument) => void
}

/** What is being drawn, held by the page: the picture and the form both change it. */
export interface Drawing {
  kind: Kind | null
  points: readonly Point[]
  set: (kind: Kind | null, points: readonly Point[]) => void
}

export function ZoneEditor({ camera, known, drawing, onChanged }: ZoneEditorProps) {
  const may = useMay('operator')
  const [message, setMessage] = useState('')
  const [failed, setFailed] = useState<'no' | 'refused' | 'meanwhile'>('no')
  const tools = useRef<HTMLDivElement>(null)
  const wasDrawing = useRef(false)
  /** What had the focus is gone: the keyboard goes on where one draws. */
  const toTools = useCallback(() => tools.current?.querySelector('button')?.focus(), [])
  useEffect(() => {
    if (drawing.kind === null && wasDrawing.current) toTools()
    wasDrawing.current = drawing.kind !== null
  }, [drawing.kind, toTools])
  // What was saved a moment ago is here at once; the states of the camera come later.
  const shapes: Shapes = {
    zones: known.overrides.zones ?? camera.tracking?.zones ?? [],
    lines: known.overrides.lines ?? camera.tracking?.lines ?? [],
  }

  async function save(change: Change, done: string): Promise<boolean> {
    // All of them are sent, so they must be those that were seen here.
    const base = { zones: known.versions.zones }
    try {
      onChanged(await request('PATCH /v1/cameras/{id}', { path: { id: camera.id }, body: { ...change, base } }))
      setMessage(done)
      setFailed('no')
      return true
    } catch (error) {
      setMessage(messageOf(error))
      setFailed(isChangedMeanwhile(error) ? 'meanwhile' : 'refused')
      return false
    }
  }

  const loaded = (now: CameraDocument) => {
    setMessage(`Zones and lines are as they are set now.${drawing.kind === null ? '' : ' Your drawing is kept: save it again.'}`)
    setFailed('no')
    onChanged(now)
  }

  async function remove(name: string): Promise<void> {
    if (await save(without(shapes, name), `${name} is removed.`)) toTools()
  }

  return (
    <section class={`${styles.card} card`} aria-labelledby="zones-title">
      <h2><span id="zones-title">Zones and lines</span> {camera.tracking && <span class="muted">{camera.tracking.tracks} tracked</span>}</h2>
      <ul>
        {camera.tracking?.zones.map((zone) => (
          <li key={`zone-${zone.name}`}>
            <strong>{zone.name}</strong> <span data-testid="zone-counts">{inWords(zone.counts)}</span>
            {may && <button type="button" onClick={() => void remove(zone.name)} aria-label={`Remove zone ${zone.name}`}>Remove</button>}
          </li>
        ))}
        {camera.tracking?.lines.map((line) => (
          <li key={`line-${line.name}`}>
            <strong>{line.name}</strong> <span data-testid="line-counts">{crossingsInWords(line)}</span>
            {may && <button type="button" onClick={() => void remove(line.name)} aria-label={`Remove line ${line.name}`}>Remove</button>}
          </li>
        ))}
      </ul>
      {!may ? <p><LogInHint scope="operator" to="draw and remove them" /></p> : drawing.kind === null ? (
        <div class={page.tools} ref={tools}>
          <button type="button" onClick={() => drawing.set('zone', [])}>Draw a zone</button>
          <button type="button" onClick={() => drawing.set('line', [])}>Draw a line</button>
        </div>
      ) : (
        <Form kind={drawing.kind} points={drawing.points} onCancel={() => drawing.set(null, [])} onSave={async (words) => {
          const saved = await save(added(shapes, drawing.kind ?? 'zone', words, drawing.points), `${words.name} is saved.`)
          if (saved) drawing.set(null, [])
        }} />
      )}
      <p role="status" class={failed === 'no' ? 'muted' : page.refused} data-testid="zones-saved">
        {failed === 'meanwhile' ? <ChangedMeanwhile camera={camera.id} message={message} onLoaded={loaded} /> : message}
      </p>
    </section>
  )
}

interface FormProps {
  kind: Kind
  points: readonly Point[]
  onSave: (words: { name: string; classes: string; dwell: string }) => Promise<void>
  onCancel: () => void
}

function Form({ kind, points, onSave, onCancel }: FormProps) {
  const [words, setWords] = useState({ name: '', classes: '', dwell: '' })
  const field = (name: keyof typeof words, label: string, id?: string) => (
    <label>{label} <input id={id} type="text" value={words[name]} autocomplete="off" onInput={(event) => setWords({ ...words, [name]: event.currentTarget.value })} /></label>
  )
  return (
    <form class={styles.form} onSubmit={(event) => {
      event.preventDefault()
      void onSave(words)
    }}>
      <p class="muted">
        Click the picture, or focus it and move with the arrows: Enter sets a point, Backspace takes the last away, Escape ends. {pointsText(kind, points)}
      </p>
      {field('name', 'Name', NAME_ID)}
      {field('classes', 'Classes, by commas; empty: all')}
      {kind === 'zone' && field('dwell', 'Event after s')}
      <div class={page.tools}>
        <button type="submit" class={page.primary} disabled={points.length < POINTS_MIN[kind] || words.name === ''}>Save</button>
        <button type="button" onClick={onCancel}>Cancel</button>
      </div>
    </form>
  )
}
