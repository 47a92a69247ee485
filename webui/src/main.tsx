// Starts the page: the socket feeds states to the component tree and frames to the canvases.

import 'uplot/dist/uPlot.min.css'
import './ui/global.css'

import { render } from 'preact'

import { may, type Session } from './access/session'
import { messageOf, request } from './api/api'
import { App } from './app/App'
import { FrameDispatcher } from './live/frameDispatcher'
import { shouldReload } from './api/reconnect'
import { routeOf } from './app/route'
import { BoxSocket, type Connection } from './api/socket'
import { webSocketAddress } from './api/webSocketAddress'
import { applyTheme, savedTheme } from './ui/theme'
import { TimelineFeed } from './scheduler/timelineFeed'
import { titleOf } from './app/titles'
import type { BoxState } from './api/types'

const RELOADED_FOR = 'edgebox.reloaded-for'
const ENDED = 'edgebox.session-ended'

const root = document.getElementById('app')
if (!root) throw new Error('the page has no #app')

const dispatcher: FrameDispatcher = new FrameDispatcher((wanted) => socket.watchFrames(wanted))
let connection: Connection = { phase: 'connecting' }
let state: BoxState | null = null
let loadedWith: string | null = null
let unreadable: string | null = null
let session: Session | null = null
const sessionEnded = taken(ENDED)
/** How often the socket was lost, or could not be opened, since it was live. */
let failures = 0

const socket = new BoxSocket(webSocketAddress(document.baseURI, 'v1/ui'), {
  onConnection(next) {
    if (next.phase === 'live' && connection.phase === 'live') return
    const before = connection
    connection = next
    draw()
    if (next.phase === 'live') {
      failures = 0
      // It may be another box by now, or one that did not say before who uses this page.
      if (session === null || before.phase === 'lost') void askSession()
    }
    if (next.phase === 'lost' && next.retry_at_ms !== null) failures += 1
    // A token that was revoked closes the socket and keeps it closed, as a box does that is down.
    if (failures > 1) void askSession().then(() => session && !may(session, 'viewer') && logInAgain())
  },
  onState(next) {
    loadedWith ??= next.box.version
    if (reloadForUpgrade(loadedWith, next.box.version)) return
    state = next
    draw()
  },
  onFrame: (frame) => dispatcher.show(frame),
  onTimeline: (update) => feed.take(update),
  onUnreadable(why, version) {
    if (version !== null && reloadForUpgrade(loadedWith ?? version, version)) return
    if (unreadable !== why) console.error(`The box sends what this page does not understand: ${why}`)
    unreadable = why
    draw()
  },
})
const feed = new TimelineFeed((wanted) => socket.watchTimeline(wanted))

function draw(): void {
  const route = routeOf(location.hash)
  document.title = titleOf(route, state?.box.name ?? 'edgebox')
  render(
    <App
      connection={connection}
      state={state}
      unreadable={unreadable}
      dispatcher={dispatcher}
      feed={feed}
      onRetry={() => socket.retryNow()}
      route={route}
      session={session}
      sessionEnded={sessionEnded}
    />,
    root as HTMLElement,
  )
}

function reloadForUpgrade(loaded: string, seen: string): boolean {
  try {
    if (!shouldReload(loaded, seen, sessionStorage.getItem(RELOADED_FOR))) return false
    sessionStorage.setItem(RELOADED_FOR, seen)
  } catch {
    // Without storage nothing would stop a second reload.
    return false
  }
  location.reload()
  return true
}

/** Begin anew, with the login and why it is there. */
function logInAgain(): void {
  try {
    // Whoever saw the box here knows nothing of a login that is needed now.
    if (state !== null) sessionStorage.setItem(ENDED, 'yes')
  } catch {
    // Without storage the login comes without a reason.
  }
  location.reload()
}

/** Whether the page left itself this note before it was loaded again. */
function taken(note: string): boolean {
  try {
    const found = sessionStorage.getItem(note) !== null
    sessionStorage.removeItem(note)
    return found
  } catch {
    return false
  }
}

/** Learn who uses this page; what was known stays if the box does not answer. */
async function askSession(): Promise<void> {
  try {
    session = await request('GET /v1/session')
    draw()
  } catch (error) {
    console.info(messageOf(error))
  }
}

async function start(): Promise<void> {
  await askSession()
  if (session === null || may(session, 'viewer')) socket.start()
  else draw()
}

applyTheme(savedTheme())
draw()
void start()
let shown = routeOf(location.hash)
window.addEventListener('hashchange', () => {
  draw()
  const before = shown
  shown = routeOf(location.hash)
  // Another stretch of time on the same page is no other page.
  if (shown.page !== before.page || shown.camera !== before.camera) window.scrollTo(0, 0)
})
