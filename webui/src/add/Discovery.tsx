// Looks for ONVIF cameras in the box's network; one click puts a camera's streams into the form.

import styles from './Fetched.module.css'

import { useState } from 'preact/hooks'

import { messageOf, request } from '../api/api'
import { plural } from '../ui/format'
import { sizesText, streamsOf, type FoundCamera, type Login, type Streams } from './discovered'

interface DiscoveryProps {
  /** What stands in the form: for cameras that ask for it. */
  login: Login
  onChoose: (camera: FoundCamera, streams: Streams) => void
}

export function Discovery({ login, onChoose }: DiscoveryProps) {
  const [found, setFound] = useState<readonly FoundCamera[] | null>(null)
  const [refusal, setRefusal] = useState('')
  const [searching, setSearching] = useState(false)
  const ask = async (body: Record<string, string>, take: (cameras: readonly FoundCamera[]) => void) => {
    setSearching(true)
    setRefusal('')
    try {
      take((await request('POST /v1/sources/discover', { body })).cameras)
    } catch (error) {
      setRefusal(messageOf(error))
    }
    setSearching(false)
  }
  const search = () => ask({}, setFound)
  const askAgain = (camera: FoundCamera) => ask({ host: camera.host, ...login }, (answers) => {
    const again = answers.find(({ port }) => port === camera.port)
    if (!again) return setRefusal(`${camera.host} does not answer any more.`)
    setFound((found ?? []).map((one) => (one === camera ? again : one)))
    const streams = streamsOf(again)
    if (streams) onChoose(again, streams)
  })
  return (
    <div class={styles.discovery}>
      <div class={styles.actions}>
        <button type="button" disabled={searching} onClick={() => void search()}>{searching ? 'Looking for cameras…' : 'Find cameras in the network'}</button>
        <small class="muted">Cameras with ONVIF answer within a few seconds.</small>
      </div>
      {refusal && <p class={styles.lost} role="alert" data-testid="discovery-refusal">{refusal}</p>}
      <div role="status" data-testid="discovered">
        {found?.length === 0 && <p>No camera answered. ONVIF and discovery must be switched on in the camera, and the camera must be in the same network as the box. You can also enter its address below.</p>}
        {found !== null && found.length > 0 && <p class="muted">{plural(found.length, 'camera')} answered. Choose one to fill in the form.</p>}
      </div>
      {found !== null && found.length > 0 && (
        <ul class={styles.sources}>
          {found.map((camera) => <Found key={`${camera.host}:${camera.port}`} camera={camera} idle={!searching} login={login} onChoose={onChoose} onAsk={() => void askAgain(camera)} />)}
        </ul>
      )}
    </div>
  )
}

interface FoundProps {
  camera: FoundCamera
  idle: boolean
  login: Login
  onChoose: DiscoveryProps['onChoose']
  onAsk: () => void
}

function Found({ camera, idle, login, onChoose, onAsk }: FoundProps) {
  const streams = streamsOf(camera)
  const name = camera.name || camera.host
  return (
    <li class={styles.source} data-testid="found-camera" data-host={camera.host}>
      <p><strong>{name}</strong> {camera.name && <span class="muted">{camera.host}</span>}</p>
      <p class={streams ? 'muted' : styles.lost}>{streams ? sizesText(camera) : `${camera.why || 'it names no stream'}.`}{!streams && login.username === '' && ' Enter its user name and password below, then ask it.'}</p>
      <div class={styles.remove}>
        {streams ? <button type="button" aria-label={`Use ${name}`} onClick={() => onChoose(camera, streams)}>Use</button>
        : <button type="button" aria-label={`Ask ${name}`} disabled={!idle || login.username === ''} onClick={onAsk}>Ask</button>}
      </div>
    </li>
  )
}
