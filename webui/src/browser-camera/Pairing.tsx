// The code with which this browser becomes a camera of a box that needs a login.

import styles from './CameraPage.module.css'

import { useEffect, useState } from 'preact/hooks'

import { may } from '../access/session'
import { messageOf, request } from '../api/api'

export interface Pairing {
  /** Whether a code must be given before the camera can start. */
  needed: boolean
  code: string
  refusal: string
  setCode: (code: string) => void
  /** Use the code for a camera of this name; whether it may start. */
  pair: (camera: string) => Promise<boolean>
}

/** The code in an address's part after the #: "#pair=K7QF-2M9D". */
export function codeIn(hash: string): string {
  return new URLSearchParams(hash.replace(/^#/, '')).get('pair') ?? ''
}

export function usePairing(): Pairing {
  const [needed, setNeeded] = useState(false)
  const [code, setCode] = useState(() => codeIn(location.hash))
  const [refusal, setRefusal] = useState('')
  useEffect(() => {
    request('GET /v1/session').then((session) => setNeeded(!may(session, 'camera')), () => {})
  }, [])
  const pair = async (camera: string) => {
    if (!code) return !needed
    try {
      await request('POST /v1/pair', { body: { code, camera, browser: true } })
    } catch (error) {
      setRefusal(messageOf(error))
      return false
    }
    // A code works once: after a reload the cookie counts.
    history.replaceState(null, '', location.pathname + location.search)
    setNeeded(false)
    setCode('')
    setRefusal('')
    return true
  }
  return { needed, code, refusal, setCode, pair }
}

export function PairingCode({ pairing: { needed, code, refusal, setCode } }: { pairing: Pairing }) {
  if (!needed && !code && !refusal) return null
  return (
    <div class={`card ${styles.note}`}>
      <label class={styles.code}>
        <span>Pairing code</span>
        <input type="text" value={code} maxLength={20} autocomplete="off" autocapitalize="characters" spellcheck={false} onInput={(event) => setCode(event.currentTarget.value.trim())} />
        <small class="muted">This box needs a login. Its page shows a code under Add a camera, which works once.</small>
      </label>
      {refusal && <p role="alert" data-testid="pairing-refused">{refusal}</p>}
    </div>
  )
}
