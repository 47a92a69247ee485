// All cameras live, and the box's health.

import styles from './Overview.module.css'

import { useEffect, useState } from 'preact/hooks'

import { Applications } from './Applications'
import { BoxLine } from './BoxLine'
import { CameraTile } from './CameraTile'
import { Events } from './Events'
import { ErrorBoundary } from '../ui/ErrorBoundary'
import { NoCameras } from './NoCameras'
import type { FrameDispatcher } from '../live/frameDispatcher'
import type { BoxState } from '../api/types'
import { BY_NAME } from '../ui/names'

export interface PageProps {
  state: BoxState
  dispatcher: FrameDispatcher
}

export function Overview({ state, dispatcher }: PageProps) {
  const [enlarged, setEnlarged] = useState<string | null>(null)
  useEffect(() => {
    if (enlarged === null) return
    const close = (event: KeyboardEvent) => {
      if (event.key === 'Escape') setEnlarged(null)
    }
    window.addEventListener('keydown', close)
    return () => window.removeEventListener('keydown', close)
  }, [enlarged])

  // A camera keeps its place whatever becomes of it: tiles that move are hard to watch.
  const cameras = [...state.cameras].sort((a, b) => BY_NAME.compare(a.id, b.id))
  return (
    <>
      <ErrorBoundary what="The box's state">
        <BoxLine state={state} />
      </ErrorBoundary>
      <div class={`live-data ${styles.columns}`}>
        <main aria-label="Cameras">
          {cameras.length === 0 && <NoCameras ready={state.box.ready} />}
          <div class={styles.tiles}>
            {cameras.map((camera) => (
              <ErrorBoundary key={camera.id} what={`Camera ${camera.id}`}>
                <CameraTile
                  camera={camera}
                  window_s={state.box.window_s}
                  synthetic={state.box.only_synthetic}
                  dispatcher={dispatcher}
                  enlarged={camera.id === enlarged}
                  onToggle={() => setEnlarged(camera.id === enlarged ? null : camera.id)}
                />
              </ErrorBoundary>
            ))}
          </div>
        </main>
        <Events events={state.box.events} />
      </div>
      <ErrorBoundary what="Execution by application">
        <Applications applications={state.box.applications} />
      </ErrorBoundary>
    </>
  )
}
