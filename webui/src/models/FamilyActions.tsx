// Making a family the default, and removing one that was imported.

import jobStyles from './JobLine.module.css'
import styles from './FamilyActions.module.css'

import { useState } from 'preact/hooks'

import { messageOf, request } from '../api/api'
import type { Family, ModelList } from './families'

interface FamilyActionsProps {
  list: ModelList
  family: Family
  /** Whether a job runs; then nothing is removed. */
  busy: boolean
  onChanged: () => void
}

export function FamilyActions({ list, family, busy, onChanged }: FamilyActionsProps) {
  const [asked, setAsked] = useState(false)
  const [refusal, setRefusal] = useState('')
  const isDefault = family.name === list.default
  const run = (change: Promise<unknown>) => {
    setRefusal('')
    setAsked(false)
    change.then(onChanged, (error: unknown) => setRefusal(messageOf(error)))
  }
  const path = { family: family.name }
  return (
    <div class={styles.actions}>
      {!isDefault && (
        <button type="button" onClick={() => run(request('POST /v1/models/{family}/default', { path }))}>Make {family.name} the default</button>
      )}
      {family.imported && !isDefault && !asked && <button type="button" disabled={busy} onClick={() => setAsked(true)}>Remove {family.name}</button>}
      {asked && (
        <>
          <span>Its files are deleted.</span>
          <button type="button" onClick={() => run(request('DELETE /v1/models/{family}', { path }))}>Delete {family.name}</button>
          <button type="button" onClick={() => setAsked(false)}>Keep it</button>
        </>
      )}
      {refusal && <p class={jobStyles.failed} role="alert">{refusal}</p>}
    </div>
  )
}
