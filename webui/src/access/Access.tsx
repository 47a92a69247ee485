// Who may use this box: its tokens, making and revoking them.

import notices from '../ui/notices.module.css'
import styles from './Access.module.css'

import { useState } from 'preact/hooks'

import { messageOf, request } from '../api/api'
import { usePolled } from '../api/polling'
import type { Answers } from '../api/api-types'
import { Command } from '../ui/Command'
import { Confirm } from '../ui/Confirm'
import { duration } from '../ui/format'
import type { Scope } from './session'

type Token = Answers['GET /v1/tokens']['tokens'][number]
type Issued = Answers['POST /v1/tokens']

const PERIOD_MS = 5_000
const SCOPES: readonly { scope: Scope; words: string }[] = [
  { scope: 'viewer', words: 'viewer: sees everything' },
  { scope: 'operator', words: 'operator: also sets and pairs cameras' },
  { scope: 'admin', words: 'admin: also imports models and makes tokens' },
  { scope: 'camera', words: 'camera: sends pictures as one camera' },
  { scope: 'metrics', words: 'metrics: reads /metrics' },
]

export function Access() {
  const { answer, error, put } = usePolled('GET /v1/tokens', {}, PERIOD_MS)
  const refresh = async () => put(await request('GET /v1/tokens'))
  return (
    <main class={styles.page} aria-label="Access">
      {error && !answer && <p class={`card ${notices.broken}`} role="alert">The tokens cannot be shown: {error.message}</p>}
      <NewToken onMade={() => void refresh()} />
      {answer && <Tokens tokens={answer.tokens} onRevoked={() => void refresh()} />}
    </main>
  )
}

function ago(at_ms: number | null): string {
  return at_ms === null ? 'never' : `${duration(Math.max(0, Date.now() - at_ms) / 1000)} ago`
}

function NewToken({ onMade }: { onMade: () => void }) {
  const [name, setName] = useState('')
  const [scope, setScope] = useState<Scope>('viewer')
  const [made, setMade] = useState<Issued | null>(null)
  const [refusal, setRefusal] = useState('')
  const make = async (event: Event) => {
    event.preventDefault()
    setRefusal('')
    try {
      setMade(await request('POST /v1/tokens', { body: scope === 'camera' ? { scope, camera: name } : { scope, name } }))
      setName('')
      onMade()
    } catch (error) {
      setMade(null)
      setRefusal(messageOf(error))
    }
  }
  return (
    <section class={`card ${styles.card}`} aria-labelledby="new-token-title">
      <h2 id="new-token-title">New token</h2>
      <form class={styles.form} onSubmit={(event) => void make(event)}>
        <label>
          <span>{scope === 'camera' ? 'Name of the camera' : 'Who gets it'}</span>
          <input type="text" required value={name} maxLength={scope === 'camera' ? 64 : 80} autocomplete="off" spellcheck={false} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        <label>
          <span>What it allows</span>
          <select value={scope} onChange={(event) => setScope(event.currentTarget.value as Scope)}>
            {SCOPES.map((one) => <option key={one.scope} value={one.scope}>{one.words}</option>)}
          </select>
        </label>
        <button type="submit" disabled={name.trim() === ''}>Make a token</button>
      </form>
      {refusal && <p class={styles.refused} role="alert">{refusal}</p>}
      {made && (
        <div class={styles.made} role="status" data-testid="made">
          <p>The token of {made.name}. It is shown only now: whoever has it may do what it allows.</p>
          <Command text={made.token} />
        </div>
      )}
    </section>
  )
}

function Tokens({ tokens, onRevoked }: { tokens: readonly Token[]; onRevoked: () => void }) {
  const [refusal, setRefusal] = useState('')
  const revoke = async (id: string) => {
    try {
      await request('DELETE /v1/tokens/{id}', { path: { id } })
      setRefusal('')
    } catch (error) {
      setRefusal(messageOf(error))
    }
    onRevoked()
  }
  return (
    <section class={`card ${styles.card}`} aria-labelledby="tokens-title">
      <h2 id="tokens-title">Tokens</h2>
      {refusal && <p class={styles.refused} role="alert">{refusal}</p>}
      <div class="scroll-x" tabIndex={0} role="region" aria-label="All tokens">
        <table class={styles.tokens}>
          <thead>
            <tr><th scope="col">Name</th><th scope="col" class={styles.wide}>Scope</th><th scope="col" class={styles.wide}>Made</th><th scope="col" class={styles.wide}>Last used</th><th scope="col"><span class="visually-hidden">Revoke</span></th></tr>
          </thead>
          <tbody>
            {tokens.map(({ id, name, scope, created_ms, last_used_ms }) => (
              <tr key={id} data-testid="token" data-token={id}>
                <th scope="row">
                  {name}
                  <small class={`muted ${styles.narrow}`}>{scope}, made {ago(created_ms)}, {last_used_ms === null ? 'never used' : `last used ${ago(last_used_ms)}`}</small>
                </th>
                <td class={styles.wide}>{scope}</td>
                <td class={styles.wide}>{ago(created_ms)}</td>
                <td class={styles.wide}>{ago(last_used_ms)}</td>
                <td>
                  <Confirm ask="Revoke…" label={`Revoke ${name}…`} confirm={`Revoke ${name}`} class={styles.danger} onConfirm={() => void revoke(id)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="muted">A revoked token ends its sessions and connections at once. Cameras get theirs by a pairing code, under Add a camera.</p>
    </section>
  )
}
