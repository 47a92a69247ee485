// A button that asks back before it does what cannot be undone. The focus follows: to the way out, and back.

import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

interface ConfirmProps {
  /** What the button says; `label` is for screen readers, where that is too short for them. */
  ask: string
  label?: string
  /** What the second button says, which does it. */
  confirm: string
  /** Added to the second button. */
  class?: string | undefined
  disabled?: boolean
  /** What a person should know before. */
  children?: ComponentChildren
  /** Called when the question is put: what was said of an earlier try is past. */
  onAsk?: () => void
  onConfirm: () => void
}

export function Confirm({ ask, label, confirm, class: added, disabled = false, children, onAsk, onConfirm }: ConfirmProps) {
  const [asking, setAsking] = useState(false)
  const first = useRef<HTMLButtonElement>(null)
  const keep = useRef<HTMLButtonElement>(null)
  const wasAsking = useRef(false)
  useEffect(() => {
    if (asking) keep.current?.focus()
    else if (wasAsking.current) first.current?.focus()
    wasAsking.current = asking
  }, [asking])
  if (!asking) {
    return <button key="ask" ref={first} type="button" aria-label={label} disabled={disabled} onClick={() => { onAsk?.(); setAsking(true) }}>{ask}</button>
  }
  return (
    <>
      {children}
      <button key="confirm" type="button" class={added} onClick={() => { setAsking(false); onConfirm() }}>{confirm}</button>{' '}
      <button key="keep" ref={keep} type="button" onClick={() => setAsking(false)}>Keep it</button>
    </>
  )
}
