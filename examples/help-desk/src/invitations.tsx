import { useMutation } from '@tanstack/react-query'
import { client, hooks } from './atoll'
import { navigate } from './router'
import { Field, Notice, onSubmit } from './ui'

/** The companies that have invited the user, who joins one or declines. */
export function Invitations() {
  const { data: invitations = [] } = hooks.useInvitations()
  const answer = hooks.useAnswerInvitation()
  const activate = hooks.useActivateWorkspace()
  const join = async (workspace: string) => {
    await answer.mutateAsync({ workspace, answer: 'accept' })
    await activate.mutateAsync(workspace)
    navigate('/')
  }
  if (!invitations.length) return null
  return (
    <section aria-labelledby="invitations">
      <h2 id="invitations">You are invited</h2>
      <ul className="people">
        {invitations.map(({ _id, workspace }) => (
          <li key={_id}>
            <span>{workspace.name}</span>
            {/* What fails is shown below the list. */}
            <button type="button" onClick={() => void join(workspace._id).catch(() => {})}>
              Join {workspace.name}
            </button>
            <button
              type="button"
              aria-label={`Decline ${workspace.name}`}
              onClick={() => answer.mutate({ workspace: workspace._id, answer: 'decline' })}
            >
              Decline
            </button>
          </li>
        ))}
      </ul>
      <Notice error={answer.error ?? activate.error} />
    </section>
  )
}

/** Confirms an e-mail address by the link of a mail, or by its code. */
export function VerifyEmail() {
  const { data: me } = hooks.useMe()
  const token = new URLSearchParams(location.search).get('token')
  const verify = useMutation({
    mutationFn: (code: string) => client.email.verify(token ?? { email: me?.email ?? '', code: code.trim() }),
  })
  if (verify.isSuccess)
    return (
      <p role="status">
        Your address is confirmed. <a href="/">Go on</a>
      </p>
    )
  return (
    <form className="narrow" onSubmit={onSubmit(({ code = '' }) => verify.mutate(code))}>
      <h1>Confirm your e-mail address</h1>
      {token === null && (
        <Field label="Code in the mail">
          <input name="code" autoComplete="one-time-code" inputMode="numeric" required />
        </Field>
      )}
      <Notice error={verify.error} />
      <button type="submit" disabled={verify.isPending}>
        Confirm
      </button>
    </form>
  )
}
