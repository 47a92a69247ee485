// Forgetting a camera that is not connected, after a question.

import page from './Camera.module.css'
import styles from './Forget.module.css'

import { useRef, useState } from 'preact/hooks'

import { messageOf, request } from '../api/api'
import { hashOf } from '../app/route'

export function Forget({ camera }: { camera: string }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [refusal, setRefusal] = useState('')
  const forget = async () => {
    try {
      await request('DELETE /v1/cameras/{id}', { path: { id: camera } })
      location.hash = hashOf({ page: 'overview' })
    } catch (error) {
      setRefusal(messageOf(error))
    }
  }
  return (
    <>
      <button type="button" class={page.danger} onClick={() => dialog.current?.showModal()}>Forget this camera…</button>
      <dialog ref={dialog} class={`card ${styles.question}`} aria-labelledby="forget-title" onClose={() => setRefusal('')}>
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
