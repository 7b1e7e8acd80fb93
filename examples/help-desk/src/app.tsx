import { hooks } from './atoll'
import { CompanyForm, CompanySwitcher } from './companies'
import { Plans } from './plans'
import { Link, usePath } from './router'
import { SignIn } from './sign-in'
import { TicketPage } from './ticket'
import { NewTicket, Tickets } from './tickets'
import { Notice } from './ui'

export function App() {
  const { data: me, isPending, error } = hooks.useMe()
  const signOut = hooks.useSignOut()
  if (isPending || error) return <Notice error={error} isLoading={isPending} />
  if (!me) return <SignIn />
  return (
    <>
      <header>
        <Link href="/" className="brand">
          Help desk
        </Link>
        <nav aria-label="Main">
          <Link href="/">Tickets</Link>
          <Link href="/plan">Plan</Link>
          <Link href="/company">Company</Link>
        </nav>
        <CompanySwitcher active={me.workspace?._id} />
        <span>{me.fullName || me.username}</span>
        <button type="button" onClick={() => signOut.mutate()}>
          Sign out
        </button>
      </header>
      <main>{me.workspace ? <Page workspace={me.workspace._id} /> : <CompanyForm />}</main>
    </>
  )
}

function Page({ workspace }: { workspace: string }) {
  const path = usePath()
  const [, ticket] = /^\/tickets\/([\w-]+)$/.exec(path) ?? []
  if (path === '/plan') return <Plans />
  if (path === '/company') return <CompanyForm />
  if (path === '/new') return <NewTicket />
  if (ticket) return <TicketPage id={ticket} workspace={workspace} />
  return <Tickets />
}
