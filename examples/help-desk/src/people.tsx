import type { FormEvent } from 'react'
import { hooks } from './atoll'
import { Field, Notice, onSubmit } from './ui'

const ROLES = ['member', 'admin'] as const

type People = NonNullable<ReturnType<typeof hooks.useWorkspace>['data']>
type PeopleProps = { workspace: string; me: string }

/** The members of a company, and those who are invited. Its admins change both. */
export function People({ workspace, me }: PeopleProps) {
  const { data: company, isPending, error } = hooks.useWorkspace(workspace)
  if (!company) return <Notice error={error} isLoading={isPending} />
  const isAdmin = company.isPrivilegedUser
  return (
    <>
      <h1>People of {company.name}</h1>
      <Members {...{ company, me, isAdmin }} />
      {isAdmin && <Invites company={company} />}
    </>
  )
}

function Members({ company, me, isAdmin }: { company: People; me: string; isAdmin: boolean }) {
  const change = hooks.useChangeMember()
  const remove = hooks.useRemoveMember()
  const workspace = company._id
  return (
    <>
      <ul className="people">
        {company.members.map(({ user, fullName, roles }) => (
          <li key={user}>
            <span>{fullName || 'Somebody'}</span>
            {isAdmin && user !== me ? (
              <>
                <select
                  aria-label={`Role of ${fullName}`}
                  value={roles[0]}
                  onChange={({ target }) => change.mutate({ workspace, user, roles: [target.value] })}
                >
                  {[...new Set([...roles, ...ROLES])].map((role) => (
                    <option key={role}>{role}</option>
                  ))}
                </select>
                <button
                  type="button"
                  aria-label={`Remove ${fullName}`}
                  onClick={() => remove.mutate({ workspace, user })}
                >
                  Remove
                </button>
              </>
            ) : (
              <span className="muted">{roles.join(', ')}</span>
            )}
          </li>
        ))}
      </ul>
      <Notice error={change.error ?? remove.error} />
    </>
  )
}

function Invites({ company }: { company: People }) {
  const invite = hooks.useInvite()
  const withdraw = hooks.useRemoveInvite()
  const workspace = company._id
  const send = (event: FormEvent<HTMLFormElement>) =>
    onSubmit(({ email = '' }, form) =>
      invite.mutate({ workspace, email, roles: ['member'] }, { onSuccess: () => form.reset() }),
    )(event)
  return (
    <section aria-labelledby="invites">
      <h2 id="invites">Invite somebody</h2>
      <form className="row" onSubmit={send}>
        <Field label="E-mail address">
          <input name="email" type="email" autoComplete="off" required />
        </Field>
        <button type="submit" disabled={invite.isPending}>
          Invite
        </button>
      </form>
      <Notice error={invite.error ?? withdraw.error} />
      <ul className="people">
        {company.invites.map(({ _id, email }) => (
          <li key={_id}>
            <span>{email}</span>
            <span className="muted">invited</span>
            <button
              type="button"
              aria-label={`Withdraw the invite of ${email}`}
              onClick={() => withdraw.mutate({ workspace, invite: _id })}
            >
              Withdraw
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}
