// Who uses this page and what they may do, as the box says. Pure but for the context.

import { createContext } from 'preact'
import { useContext } from 'preact/hooks'

import type { Answers } from '../api/api-types'

export type Session = Answers['GET /v1/session']
export type Scope = NonNullable<Session['scope']>

/** What a token of a scope may do; as `GRANTS` of the box. */
const GRANTS: Readonly<Record<Scope, readonly Scope[]>> = {
  camera: ['camera'],
  metrics: ['metrics'],
  viewer: ['viewer', 'metrics'],
  operator: ['operator', 'viewer', 'metrics', 'camera'],
  admin: ['admin', 'operator', 'viewer', 'camera', 'metrics'],
}

export function may(session: Pick<Session, 'scope'> | null, scope: Scope): boolean {
  return session?.scope ? GRANTS[session.scope].includes(scope) : false
}

export const SessionContext = createContext<Session | null>(null)

export function useSession(): Session | null {
  return useContext(SessionContext)
}

/** Whether who uses this page may do what needs a scope. */
export function useMay(scope: Scope): boolean {
  return may(useSession(), scope)
}
