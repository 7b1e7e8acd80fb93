import { hooks } from './atoll'
import { CompanyForm, CompanySwitcher } from './companies'
import { Invitations, VerifyEmail } from './invitations'
import { People } from './people'
import { Plans } from './plans'
import { Link, usePath } from './router'
import { SignIn } from './sign-in'
import { TicketPage } from './ticket'
import { NewTicket, Tickets } from './tickets'
import { Notice } from './ui'

export function App() {
  const { data: me, isPending, error } = hooks.useMe()
  const signOut = hooks.useSignOut()
  const path = usePath()
  if (isPending || error) return <Notice error={error} isLoading={isPending} />
  if (path === '/verify-email')
    return (
      <main>
        <VerifyEmail />
      </main>
    )
  if (!me) return <SignIn />
  return (
    <>
      <header>
        <Link href="/" className="brand">
          Help desk
        </Link>
        <nav aria-label="Main">
          <Link href="/">Tickets</Link>
          <Link href="/people">People</Link>
          <Link href="/plan">Plan</Link>
          <Link href="/company">Company</Link>
        </nav>
        <CompanySwitcher active={me.workspace?._id} />
        <span>{me.fullName || me.username}</span>
        <button type="button" onClick={() => signOut.mutate()}>
          Sign out
        </button>
      </header>
      <main>
        {me.email && !me.emailVerified && (
          <p role="status">
            Your e-mail address is not confirmed. <Link href="/verify-email">Confirm it</Link>
          </p>
        )}
        <Invitations />
        {me.workspace ? <Page workspace={me.workspace._id} me={me._id} /> : <CompanyForm />}
      </main>
    </>
  )
}

function Page({ workspace, me }: { workspace: string; me: string }) {
  const path = usePath()
  const [, ticket] = /^\/tickets\/([\w-]+)$/.exec(path) ?? []
  if (path === '/people') return <People {...{ workspace, me }} />
  if (path === '/plan') return <Plans />
  if (path === '/company') return <CompanyForm />
  if (path === '/new') return <NewTicket />
  if (ticket) return <TicketPage id={ticket} workspace={workspace} />
  return <Tickets />
}
