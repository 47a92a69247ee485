// What a person chooses before the camera starts.

import page from './CameraPage.module.css'
import styles from './Choices.module.css'

import { useEffect, useState } from 'preact/hooks'

import { classes } from '../ui/classes'
import type { Others } from './CameraPage'
import { cameras } from './device'
import { DEADLINES, isName, NAME_RULE, RATES_HZ, type Chosen } from './settings'

interface ChoicesProps {
  chosen: Chosen
  onChange: (chosen: Chosen) => void
  onStart: () => void
  others: Others
}

export function Choices({ chosen, onChange, onStart, others }: ChoicesProps) {
  const devices = useDevices()
  const set = (change: Partial<Chosen>) => onChange({ ...chosen, ...change })
  const isSite = chosen.site === '' || isName(chosen.site)
  const named = isName(chosen.name) && isName(chosen.app) && isSite
  const taken = others.names.includes(chosen.name)
  return (
    <form
      class={`card ${styles.choices}`}
      aria-label="Settings of this camera"
      onSubmit={(event) => {
        event.preventDefault()
        if (named) onStart()
      }}
    >
      <button type="submit" class={classes(page.mainAction, styles.start)} disabled={!named}>Start the camera</button>
      <label class={styles.wide}>
        <span>Name</span>
        <input
          type="text" value={chosen.name} maxLength={64} autocomplete="off" autocapitalize="none" spellcheck={false}
          aria-invalid={!isName(chosen.name)} aria-describedby="name-hint"
          onInput={(event) => set({ name: event.currentTarget.value.trim() })}
        />
        <small id="name-hint" class={isName(chosen.name) && !taken ? 'muted' : styles.hint}>
          {!isName(chosen.name) ? NAME_RULE : taken ? 'A camera of this name is connected; two cannot be.' : 'Under which the box shows this camera'}
        </small>
      </label>
      <label class={styles.wide}>
        <span>Camera</span>
        <select value={chosen.device} onChange={(event) => set({ device: event.currentTarget.value })}>
          <option value="environment">Back camera</option>
          <option value="user">Front camera</option>
          {devices.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
        </select>
      </label>
      <label>
        <span>Deadline</span>
        <select value={chosen.deadline} onChange={(event) => set({ deadline: event.currentTarget.value })}>
          {Object.entries(DEADLINES).map(([key, { words }]) => <option key={key} value={key}>{words}</option>)}
        </select>
      </label>
      <label>
        <span>Frames per second</span>
        <select value={chosen.rate_hz} onChange={(event) => set({ rate_hz: Number(event.currentTarget.value) })}>
          {RATES_HZ.map((rate_hz) => <option key={rate_hz} value={rate_hz}>{rate_hz}</option>)}
        </select>
      </label>
      {(others.families.length > 1 || chosen.family !== '') && (
        <label class={styles.wide}>
          <span>Model</span>
          <select value={chosen.family} onChange={(event) => set({ family: event.currentTarget.value })}>
            <option value="">The box’s default</option>
            {[...new Set([...others.families, ...(chosen.family ? [chosen.family] : [])])].map((name) => <option key={name}>{name}</option>)}
          </select>
        </label>
      )}
      <label class={styles.wide}>
        <span>Application</span>
        <input
          type="text" list="apps" value={chosen.app} maxLength={64} autocomplete="off" autocapitalize="none" spellcheck={false}
          aria-invalid={!isName(chosen.app)} aria-describedby="app-hint"
          onInput={(event) => set({ app: event.currentTarget.value.trim() })}
        />
        <small id="app-hint" class={isName(chosen.app) ? 'muted' : styles.hint}>
          {isName(chosen.app) ? 'Cameras of one application share what the box learns of their batches' : NAME_RULE}
        </small>
        <datalist id="apps">{others.apps.map((app) => <option key={app} value={app} />)}</datalist>
      </label>
      <label class={styles.wide}>
        <span>Site <span class="muted">optional</span></span>
        <input
          type="text" list="sites" value={chosen.site} maxLength={64} autocomplete="off" autocapitalize="none" spellcheck={false}
          aria-invalid={!isSite} aria-describedby="site-hint"
          onInput={(event) => set({ site: event.currentTarget.value.trim() })}
        />
        <small id="site-hint" class={isSite ? 'muted' : styles.hint}>
          {isSite ? 'A name for the uplink, if it is shared with other cameras' : NAME_RULE}
        </small>
        <datalist id="sites">{others.sites.map((site) => <option key={site} value={site} />)}</datalist>
      </label>
    </form>
  )
}

/** The cameras this browser tells the names of: none before one was allowed. */
function useDevices(): ReadonlyArray<{ id: string; name: string }> {
  const [devices, setDevices] = useState<ReadonlyArray<{ id: string; name: string }>>([])
  useEffect(() => {
    const look = () => void cameras().then(setDevices, () => {})
    look()
    navigator.mediaDevices.addEventListener('devicechange', look)
    return () => navigator.mediaDevices.removeEventListener('devicechange', look)
  }, [])
  return devices
}
