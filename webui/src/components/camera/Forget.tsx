// Forgetting a camera that is not connected, after a question.

import page from '../../pages/Camera.module.css'
import styles from './Forget.module.css'

import { useRef, useState } from 'preact/hooks'

import { ask } from '../../api'
import { hashOf } from '../../route'

export function Forget({ camera }: { camera: string }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [refusal, refuse] = useState('')
  const forget = async () => {
    try {
      await ask(`v1/cameras/${encodeURIComponent(camera)}`, { method: 'DELETE' })
      location.hash = hashOf({ place: 'overview' })
    } catch (error) {
      refuse(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <>
      <button type="button" class={page.danger} onClick={() => dialog.current?.showModal()}>Forget this camera…</button>
      <dialog ref={dialog} class={`card ${styles.question}`} aria-labelledby="forget-title" onClose={() => refuse('')}>
        <h2 id="forget-title">Forget {camera}?</h2>
        <p>Its settings, its history and its events are deleted, for good. Its frames stay in the box’s own counts. If it connects again, it is a new camera.</p>
        {refusal && <p class={page.refused} role="alert">{refusal}</p>}
        <div class={`${page.tools} ${styles.tools}`}>
          <button type="button" onClick={() => dialog.current?.close()}>Keep it</button>
          <button type="button" class={page.danger} onClick={() => void forget()}>Forget it</button>
        </div>
      </dialog>
    </>
  )
}
