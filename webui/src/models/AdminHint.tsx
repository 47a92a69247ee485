// Why measuring and importing are not possible from here.

export function AdminHint() {
  return (
    <span class="muted" data-testid="admin-hint">
      Off on this box: <code>server.admin = true</code> in its configuration lets everybody who reaches the page do this.
    </span>
  )
}
