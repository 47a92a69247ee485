// The way in for who uses an open box without a login, and needs more than that allows.

import { may, useSession } from './session'

export function LoginButton({ onAsked }: { onAsked: () => void }) {
  const session = useSession()
  if (session === null || session.logged_in || may(session, 'admin')) return null
  return <button type="button" data-testid="log-in" onClick={onAsked}>Log in</button>
}
