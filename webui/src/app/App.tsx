// The frame around every page: header, links between the pages, the page that the address names.

import frame from '../ui/frame.module.css'
import notices from '../ui/notices.module.css'

import { useCallback, useEffect, useRef, useState } from 'preact/hooks'

import { Login } from '../access/Login'
import { LoginButton } from '../access/LoginButton'
import { LogInHint } from '../access/LogInHint'
import { LogOut } from '../access/LogOut'
import { may, type Session, SessionContext } from '../access/session'
import type { FrameDispatcher } from '../live/frameDispatcher'
import { Overview } from '../overview/Overview'
import { hashOf, type Route } from './route'
import { SCOPES } from './scopes'
import type { Connection } from '../api/socket'
import type { TimelineFeed } from '../scheduler/timelineFeed'
import type { BoxState } from '../api/types'
import { ConnectionBar, ConnectionPill } from '../ui/ConnectionStatus'
import { Logo } from '../ui/icons'
import { Lazy } from '../ui/Lazy'
import { SyntheticHint } from '../models/SyntheticHint'
import { Nav } from './Nav'
import { Verdict } from './Verdict'
import { ThemeButton } from '../ui/ThemeButton'

export interface AppProps {
  connection: Connection
  state: BoxState | null
  /** What of the box's messages this page does not understand; null: it understands them. */
  unreadable?: string | null
  dispatcher: FrameDispatcher
  feed: TimelineFeed
  onRetry: () => void
  route: Route
  /** Who uses the page; null: the box has not said so far. */
  session: Session | null
  /** Whether who used the page a moment ago may not use it any more. */
  sessionEnded?: boolean
}

export function App({ session, ...props }: AppProps) {
  return (
    <SessionContext.Provider value={session}>
      <Frame session={session} {...props} />
    </SessionContext.Provider>
  )
}

function Frame({ connection, state, unreadable = null, dispatcher, feed, onRetry, route, session, sessionEnded = false }: AppProps) {
  const { page, focus, focusIfNew } = usePageFocus(route)
  const locked = session !== null && !may(session, 'viewer')
  const here = hashOf(route)
  const [loginAsked, setLoginAsked] = useState<string | null>(null)
  const loggingIn = locked || loginAsked === here
  return (
    <div ref={page} class={frame.page} data-stale={connection.phase === 'lost' || undefined}>
      <a
        class={frame.skipLink}
        href={hashOf(route)}
        onClick={(event) => {
          event.preventDefault()
          focus()
        }}
      >
        Skip to the content
      </a>
      <header class={frame.top}>
        <h1>
          <Logo /> edgebox
        </h1>
        {state && (
          <p class={frame.topFacts}>
            {state.box.name !== 'edgebox' && <span>{state.box.name}</span>}
            <span>{state.box.version}</span>
          </p>
        )}
        <Nav route={route} inFleet={state?.box.in_fleet ?? false} />
        {state && !locked && <Verdict state={state} isLost={connection.phase === 'lost'} />}
        <div class={frame.tools}>
          {!locked && <ConnectionPill connection={connection} />}
          {!loggingIn && <LoginButton onAsked={() => setLoginAsked(here)} />}
          <LogOut />
          <ThemeButton />
        </div>
      </header>
      {!loggingIn && <SyntheticHint state={state} />}
      {loggingIn ? (
        <Login scope={locked ? session.scope : null} ended={sessionEnded} onLoggedIn={() => location.reload()} onBack={locked ? null : () => setLoginAsked(null)} />
      ) : session !== null && !may(session, SCOPES[route.page]) ? (
        <main class={notices.opening}><p><LogInHint scope={SCOPES[route.page]} to="use this page" /></p></main>
      ) : state ? (
        <Page route={route} state={state} dispatcher={dispatcher} feed={feed} onShown={focusIfNew} />
      ) : (
        <main class={notices.opening}>
          <p>
            {unreadable !== null ? `This page does not understand the box (${unreadable}). Reload it.`
              : connection.phase === 'lost' ? 'The box does not answer.' : 'Connecting to the box…'}
          </p>
        </main>
      )}
      {!locked && <ConnectionBar connection={connection} onRetry={onRetry} />}
    </div>
  )
}

/** Moves the focus to the page that a person went to: who hears the page instead of seeing it is told of it. */
function usePageFocus({ page: name, camera }: Route) {
  const page = useRef<HTMLDivElement>(null)
  const shown = useRef<string | null>(null)
  const isNew = useRef(false)
  const focus = useCallback(() => {
    isNew.current = false
    const main = page.current?.querySelector('main')
    if (!main) return
    main.tabIndex = -1
    main.focus({ preventScroll: true })
  }, [])
  /** A page that is still being loaded takes the focus when it is there. */
  const focusIfNew = useCallback(() => {
    if (isNew.current) focus()
  }, [focus])
  const now = `${name} ${camera ?? ''}`
  useEffect(() => {
    // The first page leaves the focus where a browser has it: before the skip link.
    isNew.current = shown.current !== null && shown.current !== now
    shown.current = now
    if (!page.current?.querySelector('main[aria-busy="true"]')) focusIfNew()
  }, [now, focusIfNew])
  return { page, focus, focusIfNew }
}

interface PageChoice extends Pick<AppProps, 'dispatcher' | 'feed' | 'route'> {
  state: BoxState
  onShown: () => void
}

function Page({ route, state, dispatcher, feed, onShown }: PageChoice) {
  switch (route.page) {
    case 'add':
      return <Lazy load={addPage} props={{ state, dispatcher }} onShown={onShown} />
    case 'boxes':
      return <Lazy load={boxesPage} props={{ inFleet: state.box.in_fleet }} onShown={onShown} />
    case 'scheduler':
      return <Lazy load={schedulerPage} props={{ state, feed }} onShown={onShown} />
    case 'models':
      return <Lazy load={modelsPage} props={{ state }} onShown={onShown} />
    case 'access':
      return <Lazy load={accessPage} props={{}} onShown={onShown} />
    case 'settings':
      return <Lazy load={settingsPage} props={{ state }} onShown={onShown} />
    case 'camera':
      return <Lazy load={cameraPage} props={{ state, dispatcher, camera: route.camera ?? '', range: route.range, setting: route.setting }} onShown={onShown} />
    default:
      return <Overview state={state} dispatcher={dispatcher} />
  }
}

const accessPage = async () => (await import('../access/Access')).Access
const addPage = async () => (await import('../add/Add')).Add
const boxesPage = async () => (await import('../boxes/Boxes')).Boxes
const cameraPage = async () => (await import('../camera/Camera')).Camera
const schedulerPage = async () => (await import('../scheduler/Scheduler')).Scheduler
const modelsPage = async () => (await import('../models/Models')).Models
const settingsPage = async () => (await import('../settings/Settings')).Settings
