// A form for cameras whose pictures the box fetches itself, and what has become of those there are.

import styles from './Fetched.module.css'

import { useEffect, useRef, useState } from 'preact/hooks'

import { inWords, messageOf, request } from '../api/api'
import { LogInHint } from '../access/LogInHint'
import { useMay } from '../access/session'
import { Discovery } from './Discovery'
import type { FoundCamera, Streams } from './discovered'
import { bodyOf, liveWords, NO_FIELDS, type Fields, type TestPicture } from './fetched'
import type { Source } from '../api/types'
import { Confirm } from '../ui/Confirm'

const LABELS = { url: 'Address of its stream', username: 'User name', password: 'Password', substream_url: 'Smaller stream', rate_hz: 'Frames per second' } as const

interface FetchFormProps {
  /** The camera gets the name that stands above the form on the page. */
  name: string
  named: boolean
  /** Is told what a camera that was found calls itself. */
  onFound: (name: string) => void
}

export function FetchForm(props: FetchFormProps) {
  return (
    <section class="card" aria-labelledby="fetch-title">
      <h2 id="fetch-title">A network camera, fetched by this box</h2>
      <p class="muted">Nothing has to be installed beside the camera. The box opens its stream, now and after every start, and tries again when it is lost.</p>
      {useMay('admin') ? <Form {...props} /> : <p><LogInHint scope="admin" to="add one" /></p>}
    </section>
  )
}

function Form({ name, named, onFound }: FetchFormProps) {
  const [fields, setFields] = useState<Fields>(NO_FIELDS)
  const [tested, setTested] = useState<TestPicture | null>(null)
  const [said, setSaid] = useState('')
  const [refusal, setRefusal] = useState('')
  const [busy, setBusy] = useState<'' | 'test' | 'add'>('')
  /** How often the form was changed: an answer may be to what it said before. */
  const changes = useRef(0)
  const put = (change: Partial<Fields>) => {
    changes.current += 1
    setFields({ ...fields, ...change })
    setTested(null)
    setSaid('')
  }
  const ask = async (what: 'test' | 'add', work: (isCurrent: () => boolean) => Promise<void>) => {
    const asked = changes.current
    const isCurrent = () => changes.current === asked
    setBusy(what)
    setRefusal('')
    setSaid('')
    try {
      await work(isCurrent)
    } catch (error) {
      if (what === 'add' || isCurrent()) setRefusal(inWords(messageOf(error), LABELS))
    }
    setBusy('')
  }
  const test = () => ask('test', async (isCurrent) => {
    const picture = await request('POST /v1/sources/test', { body: bodyOf(fields) })
    if (isCurrent()) setTested(picture)
  })
  const add = () => ask('add', async (isCurrent) => {
    await request('POST /v1/cameras', { body: { id: name, ...bodyOf(fields) } })
    if (isCurrent()) {
      setFields(NO_FIELDS)
      setTested(null)
    }
    setSaid(`${name} is added. Its first picture shows below.`)
  })
  const choose = (camera: FoundCamera, streams: Streams) => {
    put(streams)
    setRefusal('')
    setSaid(`The form has the streams of ${camera.name || camera.host}. Test it, then add it.`)
    onFound(camera.name)
  }
  const text = (key: keyof typeof LABELS, hint: string, more: Record<string, string> = {}) => (
    <label class={key === 'url' ? styles.wide : undefined}>
      <span>{LABELS[key]}</span>
      <input type="text" value={fields[key]} autocomplete="off" spellcheck={false} autocapitalize="none" name={`source-${key}`} {...more} onInput={(event) => put({ [key]: event.currentTarget.value })} />
      <small>{hint}</small>
    </label>
  )
  const empty = fields.url.trim() === ''
  return (
    <>
      <Discovery login={{ username: fields.username.trim(), password: fields.password }} onChoose={choose} />
      <form class={styles.form} onSubmit={(event) => { event.preventDefault(); void add() }}>
        {text('url', 'rtsp://192.168.1.20/stream, http:// with MJPEG, file:/path/to/video.mp4, or webcam:0 for a camera of this box', { inputMode: 'url', required: 'required' })}
        {text('username', 'If the camera asks for one')}
        {text('password', 'Kept by the box in a file of its own, and never shown', { type: 'password', autocomplete: 'new-password' })}
        {text('substream_url', 'Optional: read while its size is enough')}
        {text('rate_hz', '10 if left empty', { inputMode: 'decimal' })}
        <label class={styles.check}>
          <input type="checkbox" checked={fields.motion_gate} onChange={(event) => put({ motion_gate: event.currentTarget.checked })} />
          <span>Leave out pictures of a scene that stands still</span>
        </label>
        <div class={styles.actions}>
          <button type="button" disabled={empty || busy !== ''} onClick={() => void test()}>{busy === 'test' ? 'Waiting for a picture…' : 'Test'}</button>
          <button type="submit" disabled={empty || !named || busy !== ''}>{named ? `Add ${name}` : 'Give it a name, above'}</button>
        </div>
      </form>
      {refusal && <p class={styles.lost} role="alert" data-testid="fetch-refusal">{refusal}</p>}
      {said && <p role="status" data-testid="fetch-said">{said}</p>}
      {tested && (
        <figure class={styles.tested} data-testid="fetch-tested">
          <Picture jpeg={tested.jpeg} />
          <figcaption class="muted">{tested.codec}, {tested.width_px} × {tested.height_px} px</figcaption>
        </figure>
      )}
    </>
  )
}

/** A picture in base64. The page's content policy allows no data: images, so it is drawn. */
function Picture({ jpeg }: { jpeg: string }) {
  const canvas = useRef<HTMLCanvasElement>(null)
  useEffect(() => {
    let shown = true
    const bytes = Uint8Array.from(atob(jpeg), (character) => character.charCodeAt(0))
    createImageBitmap(new Blob([bytes], { type: 'image/jpeg' })).then((picture) => {
      const { current } = canvas
      if (shown && current) {
        current.width = picture.width
        current.height = picture.height
        current.getContext('2d')?.drawImage(picture, 0, 0)
      }
      picture.close()
    }, () => {})
    return () => { shown = false }
  }, [jpeg])
  return <canvas ref={canvas} role="img" aria-label="The source’s first picture" />
}

/** The cameras that the box fetches, those with trouble first. */
export function FetchedSources({ sources }: { sources: readonly Source[] }) {
  if (sources.length === 0) return null
  const sorted = [...sources].sort((a, b) => Number(a.state === 'live') - Number(b.state === 'live') || a.camera.localeCompare(b.camera))
  return (
    <section class="card" aria-labelledby="fetched-title">
      <h2 id="fetched-title">Fetched by this box</h2>
      <ul class={styles.sources}>{sorted.map((source) => <FetchedSource key={source.camera} source={source} />)}</ul>
    </section>
  )
}

function FetchedSource({ source }: { source: Source }) {
  const [refusal, setRefusal] = useState('')
  const remove = async () => {
    try {
      await request('DELETE /v1/cameras/{id}', { path: { id: source.camera } })
    } catch (error) {
      setRefusal(messageOf(error))
    }
  }
  return (
    <li class={styles.source} data-testid="source" data-camera={source.camera}>
      <p><strong>{source.camera}</strong> <span class="muted">{source.address}</span></p>
      <p class={source.state === 'live' || source.state === 'connecting' ? 'muted' : styles.lost} data-testid="source-state">{refusal || source.text || liveWords(source)}</p>
      <div class={styles.remove}>
        {source.origin === 'configuration' ? <span class="muted">in the configuration file</span>
        : <Confirm ask="Remove…" label={`Remove ${source.camera}…`} confirm={`Remove ${source.camera}`} onAsk={() => setRefusal('')} onConfirm={() => void remove()} />}
      </div>
    </li>
  )
}
