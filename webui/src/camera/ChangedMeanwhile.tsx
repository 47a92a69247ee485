// Somebody else changed what is being changed here: the box refused it, and the page offers to load what is set now.

import page from './Camera.module.css'

import { useState } from 'preact/hooks'

import { ApiError, messageOf, request } from '../api/api'
import type { CameraDocument } from './cameraOverrides'

/** Whether the box refused a change because it was made from settings that are no longer in force. */
export function isChangedMeanwhile(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status === 409
}

interface ChangedMeanwhileProps {
  camera: string
  /** The box's words: which settings, and who changed them. */
  message: string
  onLoaded: (now: CameraDocument) => void
}

export function ChangedMeanwhile({ camera, message, onLoaded }: ChangedMeanwhileProps) {
  const [failure, setFailure] = useState('')
  const load = async () => {
    try {
      onLoaded(await request('GET /v1/cameras/{id}', { path: { id: camera } }))
    } catch (error) {
      setFailure(messageOf(error))
    }
  }
  return (
    <span class={page.refused} data-testid="changed-meanwhile">
      Not saved: {failure || message}. <button type="button" onClick={() => void load()}>Load what is set now</button>
    </span>
  )
}
