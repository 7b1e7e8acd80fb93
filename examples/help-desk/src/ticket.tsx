import { useEffect, useState } from 'react'
import { type Comment, hooks, type Ticket } from './atoll'
import { useDraft } from './draft'
import { Attachments, STATUSES } from './tickets'
import { Field, formatTime, Notice, onSubmit } from './ui'

export function TicketPage({ id, workspace }: { id: string; workspace: string }) {
  // A list of one, because lists follow changes.
  const { data: [ticket] = [], isPending, error } = hooks.useLiveList('tickets', { _id: id })
  const change = hooks.useChange('tickets')
  const conversation = hooks.useLiveList('comments', { ticket: id, $sort: 'created' })
  const comments = conversation.data ?? []
  const nameOf = useNames(
    workspace,
    comments.map(({ user }) => user),
  )
  if (!ticket)
    return isPending || error ? <Notice error={error} isLoading={isPending} /> : <p>There is no such ticket.</p>
  return (
    <article>
      <h1>{ticket.subject}</h1>
      <p className="row">
        {nameOf(ticket.user)}, <time dateTime={ticket.created}>{formatTime(ticket.created)}</time>
        <select
          aria-label="Status"
          value={ticket.status}
          onChange={({ target }) =>
            change.mutate({ identifier: id, change: { status: target.value as Ticket['status'] } })
          }
        >
          {STATUSES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </p>
      <Notice error={change.error} />
      <p className="text">{ticket.text}</p>
      <Attachments urls={ticket.attachments ?? []} />
      <Notice error={conversation.error} />
      <Conversation ticket={ticket} comments={comments} nameOf={nameOf} />
    </article>
  )
}

type NameOf = (user: string | null) => string

/** Gives the names of the members of a company, which are loaded again when somebody else joins the conversation. */
function useNames(workspace: string, users: (string | null)[]): NameOf {
  const { data: company, refetch } = hooks.useWorkspace(workspace)
  const hasStranger = company && users.some((user) => !company.members.some((member) => member.user === user))
  useEffect(() => {
    if (hasStranger) void refetch()
  }, [hasStranger, refetch])
  return (user) => company?.members.find((member) => member.user === user)?.fullName || 'Somebody'
}

type ConversationProps = { ticket: Ticket; comments: Comment[]; nameOf: NameOf }

function Conversation({ ticket, comments, nameOf }: ConversationProps) {
  const create = hooks.useCreate('comments')
  const [text, setText] = useState('')
  const draft = useDraft(setText)
  const submit = onSubmit(() => create.mutate({ ticket: ticket._id, text }, { onSuccess: () => setText('') }))
  return (
    <section aria-labelledby="conversation">
      <h2 id="conversation">Conversation</h2>
      <ol className="comments" aria-live="polite">
        {comments.map((comment) => (
          <li key={comment._id}>
            <p>
              <strong>{nameOf(comment.user)}</strong>{' '}
              <time dateTime={comment.created}>{formatTime(comment.created)}</time>
            </p>
            <p className="text">{comment.text}</p>
          </li>
        ))}
      </ol>
      <form onSubmit={submit}>
        <Field label="Your comment">
          <textarea rows={5} value={text} onChange={({ target }) => setText(target.value)} required />
        </Field>
        <Notice error={create.error ?? draft.error} />
        <div className="row">
          <button type="submit" disabled={create.isPending || draft.isWriting}>
            Comment
          </button>
          {draft.isWriting ? (
            <button type="button" onClick={draft.stop}>
              Stop
            </button>
          ) : (
            draft.isAvailable && (
              <button
                type="button"
                onClick={() =>
                  draft.write(
                    ticket,
                    comments.map((one) => one.text),
                  )
                }
              >
                Draft an answer
              </button>
            )
          )}
        </div>
      </form>
    </section>
  )
}
