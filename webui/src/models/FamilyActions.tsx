// Making a family the default, and removing one that was imported.

import jobStyles from './JobLine.module.css'
import styles from './FamilyActions.module.css'

import { useState } from 'preact/hooks'

import { messageOf, request } from '../api/api'
import { Confirm } from '../ui/Confirm'
import type { Family, ModelList } from './families'

interface FamilyActionsProps {
  list: ModelList
  family: Family
  /** Whether a job runs; then nothing is removed. */
  busy: boolean
  onChanged: () => void
}

export function FamilyActions({ list, family, busy, onChanged }: FamilyActionsProps) {
  const [refusal, setRefusal] = useState('')
  const isDefault = family.name === list.default
  const run = (change: Promise<unknown>) => {
    setRefusal('')
    change.then(onChanged, (error: unknown) => setRefusal(messageOf(error)))
  }
  const path = { family: family.name }
  return (
    <div class={styles.actions}>
      {!isDefault && (
        <button type="button" onClick={() => run(request('POST /v1/models/{family}/default', { path }))}>Make {family.name} the default</button>
      )}
      {family.imported && !isDefault && (
        <Confirm ask={`Remove ${family.name}`} confirm={`Delete ${family.name}`} disabled={busy} onAsk={() => setRefusal('')} onConfirm={() => run(request('DELETE /v1/models/{family}', { path }))}>
          <span>Its files are deleted.</span>
        </Confirm>
      )}
      {refusal && <p class={jobStyles.failed} role="alert">{refusal}</p>}
    </div>
  )
}
