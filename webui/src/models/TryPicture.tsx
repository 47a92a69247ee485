// A picture of a person's own, and what a model sees in it.

import jobStyles from './JobLine.module.css'
import styles from './TryPicture.module.css'

import { useEffect, useRef, useState } from 'preact/hooks'

import { messageOf, request } from '../api/api'
import { LogInHint } from '../access/LogInHint'
import { useMay } from '../access/session'
import { classColour, countsByClass } from '../live/classColours'
import { drawFound } from '../live/painter'
import { scaleBox } from '../live/geometry'
import { milliseconds, percent } from '../ui/format'
import type { Family, ModelList } from './families'
import type { PictureAnswer } from './pictureAnswer'
import { upright } from './upright'

/** A person waits for it, and nobody else does. */
const DEADLINE_MS = 60_000

interface Seen {
  answer: PictureAnswer
  family: Family
  bitmap: ImageBitmap
  name: string
}

export function TryPicture({ list, ready }: { list: ModelList; ready: boolean }) {
  const may = useMay('operator')
  const looking = list.families.filter(({ task }) => task !== 'embed')
  const [chosen, setChosen] = useState('')
  const [file, setFile] = useState<File | null>(null)
  const [seen, setSeen] = useState<Seen | null>(null)
  const [asking, setAsking] = useState(false)
  const [refusal, setRefusal] = useState('')
  const latest = useRef(0)
  const name = looking.some((family) => family.name === chosen) ? chosen : list.default

  async function look(picture: File, wanted: string): Promise<void> {
    const family = looking.find((each) => each.name === wanted)
    if (!family) return
    latest.current += 1
    const number = latest.current
    setAsking(true)
    setRefusal('')
    try {
      // What the browser cannot read the box is given all the same: it says what is wrong with it.
      const photo = await upright(picture).catch(() => null)
      const answer = await request('POST /v1/infer', { query: { family: wanted, deadline_ms: DEADLINE_MS }, body: photo?.body ?? picture })
      const bitmap = photo?.bitmap ?? (await createImageBitmap(picture))
      if (number === latest.current) setSeen({ answer: answer as PictureAnswer, family, bitmap, name: picture.name })
    } catch (error) {
      if (number === latest.current) {
        setSeen(null)
        setRefusal(messageOf(error))
      }
    } finally {
      if (number === latest.current) setAsking(false)
    }
  }

  return (
    <section class={`${styles.try} card`} aria-labelledby="try-title" data-testid="try">
      <h2 id="try-title">Try a picture</h2>
      <p class="muted">A photo of yours, as a JPEG or a PNG. It is not kept.</p>
      <div class={styles.choices}>
        <label>
          <span>Picture</span>
          <input
            type="file" accept="image/jpeg,image/png" disabled={!may || !ready}
            onChange={({ currentTarget: { files } }) => {
              const first = files?.[0] ?? null
              setFile(first)
              if (first) void look(first, name)
            }}
          />
        </label>
        <label>
          <span>Model</span>
          <select
            value={name} disabled={!may}
            onChange={({ currentTarget: { value } }) => {
              setChosen(value)
              if (file) void look(file, value)
            }}
          >
            {looking.map((family) => <option key={family.name}>{family.name}</option>)}
          </select>
        </label>
      </div>
      {!may && <p><LogInHint scope="operator" to="try pictures" /></p>}
      <p role="status" class="muted" data-testid="try-status">{asking ? 'Looking…' : ''}</p>
      {refusal && <p class={jobStyles.failed} role="alert">{refusal}</p>}
      {seen && <Result seen={seen} />}
    </section>
  )
}

function Result({ seen: { answer, family, bitmap, name } }: { seen: Seen }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    const element = canvas.current
    if (!element) return
    const draw = () => {
      const ratio = window.devicePixelRatio || 1
      element.width = Math.max(1, Math.round(element.clientWidth * ratio))
      element.height = Math.max(1, Math.round(element.clientHeight * ratio))
      const context = element.getContext('2d')
      if (!context) return
      const whole = { x: 0, y: 0, width: element.width, height: element.height }
      context.drawImage(bitmap, 0, 0, whole.width, whole.height)
      if (family.task !== 'detect') return
      const source = { width: answer.width_px, height: answer.height_px }
      drawFound(context, answer.detections, (box) => scaleBox(box, source, whole), ratio)
    }
    draw()
    const resizes = new ResizeObserver(draw)
    resizes.observe(element)
    return () => resizes.disconnect()
  }, [answer, bitmap, family])
  const counts = countsByClass(answer.detections)
  return (
    <div class={styles.result}>
      <canvas
        ref={canvas} class={styles.picture} role="img" aria-label={`${name} with what ${family.name} sees`} data-testid="try-picture"
        data-boxes={answer.detections.length} style={{ aspectRatio: `${answer.width_px} / ${answer.height_px}`, '--aspect': answer.width_px / answer.height_px }}
      />
      <div>
        <p data-testid="try-counts">
          {counts.length === 0 ? <strong>Nothing found.</strong> : counts.map(({ label, amount }, at) => (
            <span key={label}>{at > 0 && ', '}<span class={styles.colour} style={{ background: classColour(label) }} aria-hidden="true" /> {family.task === 'detect' ? `${amount} ${label}` : label}</span>
          ))}
        </p>
        <p class="muted">{answer.variant}, {milliseconds(answer.timing_ms.inference)} of inference, {milliseconds(answer.timing_ms.total)} in all</p>
        <details>
          <summary>All {answer.detections.length} with their scores</summary>
          <ul class={styles.list}>
            {answer.detections.map(({ label, score }, at) => <li key={at}>{label} {percent(score, 0)}</li>)}
          </ul>
        </details>
      </div>
    </div>
  )
}
