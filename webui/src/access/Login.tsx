// Where a person shows a token, once per browser.

import styles from './Login.module.css'

import { useEffect, useRef, useState } from 'preact/hooks'

import { messageOf, request } from '../api/api'
import { capitalised } from '../ui/format'
import { Words } from '../ui/Words'

interface LoginProps {
  /** Of the token that this browser has, which is not enough; null: it has none. */
  scope: string | null
  /** Whether this page was in use until now. */
  ended: boolean
  onLoggedIn: () => void
  /** Goes back to the page, where it can be used without a login; null: it cannot. */
  onBack: (() => void) | null
}

export function Login({ scope, ended, onLoggedIn, onBack }: LoginProps) {
  const [token, setToken] = useState('')
  const [refusal, setRefusal] = useState('')
  const [busy, setBusy] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const asked = onBack !== null
  // The button that was pressed is gone.
  useEffect(() => {
    if (asked) input.current?.focus()
  }, [asked])
  const logIn = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    try {
      await request('POST /v1/login', { body: { token } })
      onLoggedIn()
    } catch (error) {
      setRefusal(capitalised(messageOf(error)))
      setBusy(false)
    }
  }
  return (
    <main class={styles.page} aria-label="Log in">
      <form class={`card ${styles.form}`} onSubmit={(event) => void logIn(event)}>
        <h2>{asked ? 'Log in to do more' : 'This box needs a login'}</h2>
        {ended && <p role="status">Your session has ended, or its token was revoked. Log in again to go on.</p>}
        {scope && <p class={styles.refused}>The token that this browser has is of the scope {scope}; this page needs viewer, operator or admin.</p>}
        <label>
          <span>Token</span>
          <input
            ref={input} type="password" name="token" required value={token} maxLength={200} autocomplete="current-password" spellcheck={false}
            aria-describedby="token-hint" onInput={(event) => setToken(event.currentTarget.value.trim())}
          />
        </label>
        {refusal && <p class={styles.refused} role="alert"><Words text={refusal} />.</p>}
        <button type="submit" disabled={busy || token === ''}>Log in</button>
        {onBack && <button type="button" onClick={onBack}>Back</button>}
        <p id="token-hint" class="muted">
          The administrator’s token was printed when edgebox first started. On the box, <code>edgebox tokens add NAME --scope admin</code> makes another one.
        </p>
      </form>
    </main>
  )
}
