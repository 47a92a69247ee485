// When to try the box again, and when to load a newer page from it. Pure.

const FIRST_MS = 500
/** Lower than a camera's: a box has few viewers, and they are waiting for it. */
const LONGEST_MS = 5_000

/**
 * How long to wait before the attempt-th try (0 is the first): doubling, with up to half of it taken off
 * at random, so that many open pages do not come back in the same instant. `random` is in [0, 1).
 */
export function reconnectDelayMs(attempt: number, random: number, longest_ms = LONGEST_MS): number {
  const full = Math.min(longest_ms, FIRST_MS * 2 ** Math.min(attempt, 16))
  return Math.round(full * (1 - random / 2))
}

/** The box sends a state twice a second; a socket silent for this long is dead, whatever it says. */
export const SILENT_MS = 5_000

/**
 * Whether the page should load itself again: the box was upgraded since, and this page may not understand
 * it. `reloadedFor` is the version it last reloaded for: once is enough, whatever a cache answered.
 */
export function shouldReload(loadedWith: string, seen: string, reloadedFor: string | null): boolean {
  return seen !== loadedWith && seen !== reloadedFor
}
