// How to add a camera, and its arrival: the lines to run beside it, or a phone that scans the way.

import connectionStyles from '../ui/ConnectionStatus.module.css'
import pictureStyles from '../live/Picture.module.css'
import styles from './Add.module.css'

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { classes } from '../ui/classes'
import { useSession } from '../access/session'
import { messageOf, request } from '../api/api'
import type { Answers } from '../api/api-types'
import { Command } from '../ui/Command'
import { CheckIcon } from '../ui/icons'
import { QrCode } from '../ui/QrCode'
import { Tabs } from '../ui/Tabs'
import { plural } from '../ui/format'
import { Arrivals, boxAddress, commandLines, freeName, isLoopback, SOURCES } from './onboarding'
import { boxName } from './discovered'
import { FetchForm, FetchedSources } from './Fetched'
import { hashOf } from '../app/route'
import type { BoxEvent, Camera } from '../api/types'
import type { PageProps } from '../overview/Overview'
import { useLivePicture } from '../live/useLivePicture'

const NAME = /^[A-Za-z0-9._-]{1,64}$/

export function Add({ state, dispatcher }: PageProps) {
  const [name, setName] = useState(() => freeName(state.cameras))
  const [typed, setTyped] = useState(() => new URL('./', document.baseURI).href)
  const reach = useReach(setTyped)
  const nameAs = (found: string) => {
    // A name that a person gave stays.
    if (found !== '' && name === freeName(state.cameras) && !state.cameras.some(({ id }) => id === found)) setName(found)
  }
  const [key, setKey] = useState(SOURCES[0]?.key ?? '')
  const source = SOURCES.find((one) => one.key === key) ?? SOURCES[0]
  const box = boxAddress(typed, schemeOf(reach))
  const named = NAME.test(name)
  const { pairing: code, refusal, ask } = usePairingCode(name)
  const arrivals = useRef<Arrivals | null>(null)
  arrivals.current ??= new Arrivals(state.cameras)
  const came = arrivals.current.update(state.cameras)
  const connected = state.cameras.some((camera) => camera.connected && camera.id === name)
  /** A code works once: that of a camera that has come would be refused. */
  const arrived = connected && came.includes(name)
  const pairing = arrived ? '' : code
  return (
    <main class={styles.page} aria-label="Add a camera">
      <section class={`card ${styles.names}`} aria-label="Name and address">
        <label>
          <span>Name of the new camera</span>
          <input
            type="text" value={name} maxLength={64} autocomplete="off" spellcheck={false} autocapitalize="none"
            aria-invalid={!named} aria-describedby="add-name-hint" onInput={(event) => setName(event.currentTarget.value.trim())}
          />
          <NameHint named={named} connected={connected} isNew={came.includes(name)} />
        </label>
        <label>
          <span>Address at which it reaches this box</span>
          <input
            type="text" list="add-addresses" value={typed} autocomplete="off" spellcheck={false} autocapitalize="none" inputMode="url"
            aria-invalid={!box} aria-describedby="add-address-hint" onInput={(event) => setTyped(event.currentTarget.value)}
          />
          <small id="add-address-hint" class={!box || isLoopback(box) ? styles.hint : 'muted'} data-testid="reach">{reachHint(box, reach)}</small>
          <datalist id="add-addresses">{reach?.addresses.map((address) => <option key={address} value={addressAt(reach, address)} />)}</datalist>
        </label>
        {arrived ? <Another name={name} onAnother={() => setName(freeName(state.cameras))} /> : <PairingCode named={named} code={pairing} refusal={refusal} onAsk={ask} />}
      </section>

      <div class={styles.column}>
        <FetchForm name={name} named={named} onFound={(found) => nameAs(boxName(found))} />
        <FetchedSources sources={state.sources} />
        <section class="card" aria-labelledby="add-machine-title">
          <h2 id="add-machine-title">A camera, beside a computer</h2>
          <p class="muted">Run this on a computer near the camera (Linux, Python 3.11 or newer), in a copy of edgebox’s source folder:</p>
          <Tabs label="Kind of camera" tabs={SOURCES} selected={key} onSelect={setKey}>
            {source && box && named ? (
              <>
                <ol class={styles.lines} data-testid="lines">
                  {commandLines(source, box, name, pairing).map((line) => <li key={line}><Command text={line} class={styles.command} /></li>)}
                </ol>
                {!pairing && !arrived && <NeedsCode box={box} />}
                <p class="muted">{source.hint}</p>
              </>
            ) : (
              <p class={styles.hint}>Give it a name and the box an address, above.</p>
            )}
          </Tabs>
        </section>
      </div>

      <div class={styles.column}>
        <Arriving came={came} state={state} dispatcher={dispatcher} />

        <section class="card" aria-labelledby="add-phone-title">
          <h2 id="add-phone-title">A phone or laptop, in its browser</h2>
          {box && named ? <Phone box={box} name={name} code={pairing} /> : <p class={styles.hint}>Give it a name and the box an address, above.</p>}
        </section>
      </div>
    </main>
  )
}

function NameHint({ named, connected, isNew }: { named: boolean; connected: boolean; isNew: boolean }) {
  const [text, kind] =
    !named ? ['1 to 64 letters, digits, dots, dashes or underscores', styles.hint]
    : connected && isNew ? ['It is connected.', 'muted']
    : connected ? ['A camera of this name is connected; two cannot be.', styles.hint]
    : ['Letters, digits, dots and dashes', 'muted']
  return <small id="add-name-hint" class={kind}>{text}</small>
}

type Reach = Answers['GET /v1/addresses']

/** The box's own; that of this page may be a proxy's. */
function schemeOf(reach: Reach | null): string {
  return reach?.tls ? 'https' : 'http'
}

function addressAt(reach: Reach, hostAndPort: string): string {
  return `${schemeOf(reach)}://${hostAndPort}/`
}

/** Where others reach the box, by its own account; a page at localhost takes the likeliest for them. */
function useReach(use: (address: string) => void): Reach | null {
  const [reach, setReach] = useState<Reach | null>(null)
  useEffect(() => {
    const asking = new AbortController()
    request('GET /v1/addresses', { signal: asking.signal }).then(
      (answer) => {
        setReach(answer)
        const [likeliest] = answer.addresses
        if (likeliest && isLoopback(new URL(document.baseURI))) use(addressAt(answer, likeliest))
      },
      () => {},
    )
    return () => asking.abort()
  }, [use])
  return reach
}

function reachHint(box: URL | null, reach: Reach | null): ComponentChildren {
  if (!box) return `An address like ${schemeOf(reach)}://192.168.1.5:8787`
  if (!isLoopback(box)) return 'As other machines see it'
  if (reach?.only_here) return <>This box listens for its own machine only: start it with <code>--host 0.0.0.0</code> to let others in.</>
  return 'Only this machine itself reaches the box there.'
}

const NO_CODE = { name: '', code: '', expires_s: 0, refusal: '' }

/** A code for the camera of this name, asked for by a person, for as long as it works; none for another name. */
function usePairingCode(name: string): { pairing: string; refusal: string; ask: () => void } {
  const [known, setKnown] = useState(NO_CODE)
  useEffect(() => {
    if (known.code === '') return
    const timer = window.setTimeout(() => setKnown(NO_CODE), known.expires_s * 1000)
    return () => window.clearTimeout(timer)
  }, [known])
  const ask = () => {
    request('POST /v1/pairings', { body: { camera: name } }).then(
      ({ code, expires_s }) => setKnown({ name, code, expires_s, refusal: '' }),
      (error) => setKnown({ ...NO_CODE, name, refusal: messageOf(error) }),
    )
  }
  const mine = known.name === name
  return { pairing: mine ? known.code : '', refusal: mine ? known.refusal : '', ask }
}

function PairingCode({ named, code, refusal, onAsk }: { named: boolean; code: string; refusal: string; onAsk: () => void }) {
  const openTo = useSession()?.open_to
  return (
    <div class={styles.pairing}>
      <span>Pairing code</span>
      {code ? <output class={styles.code} data-testid="pairing-code">{code}</output> : <button type="button" disabled={!named} onClick={onAsk}>Get a pairing code</button>}
      <small class={refusal ? styles.hint : 'muted'} role={refusal ? 'alert' : undefined}>
        {refusal || (code ? 'Works once, within 10 minutes; it is in the line and the QR code below.'
        : openTo === 'everybody' ? 'This box lets in cameras without one. A camera with a code keeps its name to itself.'
        : openTo === 'loopback' ? 'A camera on another machine gets its token with it; one on the box’s own machine needs none.'
        : 'The camera gets its token with it; without one the box does not let it in.')}
      </small>
    </div>
  )
}

function Another({ name, onAnother }: { name: string; onAnother: () => void }) {
  return (
    <div class={styles.pairing}>
      <span>The next camera</span>
      <button type="button" onClick={onAnother}>Add another camera</button>
      <small class="muted">{name} is connected: its pairing code has been used. Another camera needs a name and a code of its own.</small>
    </div>
  )
}

/** A line without a code is refused by a box that wants one. */
function NeedsCode({ box }: { box: URL }) {
  const openTo = useSession()?.open_to
  const open = openTo === 'everybody' || (openTo === 'loopback' && isLoopback(box))
  return open ? null : <p class={styles.hint} data-testid="needs-code">Get a pairing code above first: the last line then has it.</p>
}

function Phone({ box, name, code }: { box: URL; name: string; code: string }) {
  const address = new URL(`camera?name=${encodeURIComponent(name)}${code && `#pair=${code}`}`, box).href
  const here = new URL(`camera?name=${encodeURIComponent(name)}`, document.baseURI).href
  return (
    <div class={styles.phone}>
      {!isLoopback(box) && <QrCode text={address} label={`QR code of ${address}`} />}
      <div class={styles.phoneText}>
        {isLoopback(box) ? (
          <p>A phone needs an address that leads to this box; {box.hostname} leads it to itself. Give one above.</p>
        ) : (
          <p>Scan it with the phone, allow the camera, press Start. Or open <a href={address}>{address}</a></p>
        )}
        {!isLoopback(box) && box.protocol === 'http:' && (
          <p class={styles.hint} data-testid="needs-https">
            Phones give a page their camera only over https. Start the box with --tls self-signed, or put a proxy with TLS before it and its https address above; the page behind the code says what works without.
          </p>
        )}
        <p><a class={styles.button} href={here}>Use this device as a camera</a></p>
      </div>
    </div>
  )
}

function Arriving({ came, state, dispatcher }: PageProps & { came: readonly string[] }) {
  const [openedAt_ms] = useState(state.now_ms)
  const connected = state.cameras.filter((camera) => camera.connected).length
  const warnings = state.box.events.filter(({ at_ms, level }) => level !== 'info' && at_ms > openedAt_ms)
  return (
    <section class="card" aria-labelledby="arriving-title">
      <h2 id="arriving-title" data-testid="arriving">
        {came.length === 0 && <span class={`pulsing ${connectionStyles.dot} ${styles.waitingDot}`} aria-hidden="true" />}
        {came.length === 0 ? ' Waiting for the new camera’s first frame' : `${plural(came.length, 'new camera')} since this page was opened`}
      </h2>
      {came.length === 0 && <p class="muted">{plural(connected, 'camera is', 'cameras are')} connected. A new one shows here at once, wherever it was started.</p>}
      <ul class={styles.arrivals} aria-live="polite">
        {came.map((id) => {
          const camera = state.cameras.find((one) => one.id === id)
          return camera && <Arrival key={id} camera={camera} dispatcher={dispatcher} />
        })}
      </ul>
      {warnings.length > 0 && (
        <ul data-testid="warnings">
          {warnings.slice(-3).map((event: BoxEvent) => <li key={`${event.at_ms}${event.text}`} class={styles.hint}>{event.text}</li>)}
        </ul>
      )}
    </section>
  )
}

function Arrival({ camera, dispatcher }: { camera: Camera; dispatcher: PageProps['dispatcher'] }) {
  const { canvas, caption } = useLivePicture(dispatcher, camera.id)
  return (
    <li class={styles.arrival} data-testid="arrival" data-camera={camera.id}>
      <div class={classes(pictureStyles.picture, styles.picture)}>
        <canvas ref={canvas} aria-hidden="true" />
        <p class={pictureStyles.caption} ref={caption} hidden />
      </div>
      <div>
        <p class={styles.arrivalTitle}>{camera.connected && <CheckIcon />} <strong>{camera.id}</strong> {arrivalWords(camera)}</p>
        {camera.first_frame_s !== null && camera.advice && <p>{camera.advice.reason}</p>}
        <p><a href={hashOf({ page: 'camera', camera: camera.id })}>Show {camera.id}</a></p>
      </div>
    </li>
  )
}

function arrivalWords({ connected, first_frame_s, left }: Camera): string {
  if (!connected) return `connected, and left again: ${left?.why ?? 'the reason is not known'}.`
  if (first_frame_s === null) return 'connected. Waiting for its first frame…'
  return `connected, first frame after ${first_frame_s.toFixed(1)} s.`
}
