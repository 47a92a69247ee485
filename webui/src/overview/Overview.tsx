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
import type { BoxState, Camera } from '../api/types'
import { inOrder, unseenSources } from '../figures/health'
import { SourceTile } from './SourceTile'

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

  const { shown, gone } = inOrder(state.cameras)
  const unseen = unseenSources(state)
  const fetched = new Set(state.sources.map(({ camera }) => camera))
  const isAlone = shown.length === 1 && gone.length === 0 && unseen.length === 0
  const tileOf = (camera: Camera) => (
    <ErrorBoundary key={camera.id} what={`Camera ${camera.id}`}>
      <CameraTile
        camera={camera}
        window_s={state.box.window_s}
        synthetic={state.box.only_synthetic}
        dispatcher={dispatcher}
        enlarged={isAlone || camera.id === enlarged}
        fetched={fetched.has(camera.id)}
        onToggle={isAlone ? undefined : () => setEnlarged(camera.id === enlarged ? null : camera.id)}
      />
    </ErrorBoundary>
  )
  return (
    <>
      <div class={`live-data ${styles.columns}`}>
        <main aria-label="Cameras">
          {state.cameras.length === 0 && unseen.length === 0 && <NoCameras ready={state.box.ready} expected={state.sources.length} />}
          <div class={styles.tiles} data-density={densityOf(unseen.length + shown.length)}>
            {unseen.map((source) => <SourceTile key={source.camera} source={source} />)}
            {shown.map(tileOf)}
          </div>
          {gone.length > 0 && (
            <details class={styles.gone} data-testid="gone" open={shown.length + unseen.length === 0}>
              <summary>{gone.length} disconnected: {gone.map(({ id }) => id).join(', ')}</summary>
              <div class={styles.tiles} data-density="many">{gone.map(tileOf)}</div>
            </details>
          )}
        </main>
        <Events events={state.box.events} />
      </div>
      <ErrorBoundary what="The box's state">
        <BoxLine state={state} />
      </ErrorBoundary>
      <ErrorBoundary what="Execution by application">
        <Applications applications={state.box.applications} />
      </ErrorBoundary>
    </>
  )
}

/** How close the tiles stand: all cameras are to fit one screen. */
function densityOf(amount: number): 'few' | 'some' | 'many' {
  if (amount <= 4) return 'few'
  return amount <= 9 ? 'some' : 'many'
}
