// The code with which this browser becomes a camera of a box that needs a login.

import styles from './CameraPage.module.css'

import { useEffect, useState } from 'preact/hooks'

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

/**
 * Whether this browser needs a code, asked anew whenever its camera is off.
 *
 * @param refused - The box refused its camera for want of one.
 */
export function usePairing(off: boolean, refused: boolean): Pairing {
  const [unpaired, setUnpaired] = useState(false)
  const [code, setCode] = useState(() => codeIn(location.hash))
  const [refusal, setRefusal] = useState('')
  useEffect(() => {
    if (off) request('GET /v1/session').then((session) => setUnpaired(!session.may_be_camera), () => {})
  }, [off])
  const pair = async (camera: string) => {
    if (!code) {
      // Another name may need none.
      if (unpaired) setRefusal('Enter a pairing code first.')
      return !unpaired
    }
    try {
      await request('POST /v1/pair', { body: { code, camera, browser: true } })
    } catch (error) {
      setRefusal(messageOf(error))
      return false
    }
    // A code works once: after a reload the cookie counts.
    history.replaceState(null, '', location.pathname + location.search)
    setUnpaired(false)
    setCode('')
    setRefusal('')
    return true
  }
  return { needed: unpaired || refused, code, refusal, setCode, pair }
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
