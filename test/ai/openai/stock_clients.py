# Talks to the server as programs in Python do, by the client that the first argument names. Prints one JSON object.
# BASE, KEY, TENANT and MODEL are in the environment.
import json
import os
import sys

base, key, model = os.environ["BASE"], os.environ["KEY"], os.environ["MODEL"]
headers = {"tenant": os.environ["TENANT"]}
tools = [{"type": "function", "function": {"name": "pick", "parameters": {"type": "object", "properties": {}}}}]


def with_openai():
    import openai

    client = openai.OpenAI(base_url=base, api_key=key, default_headers=headers)
    said = lambda *messages, **more: client.chat.completions.create(model=model, messages=list(messages), **more)
    hello = {"role": "user", "content": "Hello"}
    whole = said(hello).choices[0].message.content
    chunks = list(said(hello, stream=True, stream_options={"include_usage": True}))
    streamed = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
    ask = {"role": "user", "content": "call pick {}"}
    with client.chat.completions.stream(model=model, messages=[ask], tools=tools) as stream:
        answer = stream.get_final_completion().choices[0].message
    call = answer.tool_calls[0]
    result = {"role": "tool", "tool_call_id": call.id, "content": "red"}
    after = said(ask, answer, result, tools=tools).choices[0].message.content
    vector = client.embeddings.create(model=os.environ["EMBEDDER"], input="green cats").data[0].embedding
    try:
        client.chat.completions.create(model="nobody", messages=[hello])
        error = None
    except openai.NotFoundError as refusal:
        error = [refusal.code, refusal.param, refusal.type]
    return {
        "whole": whole,
        "streamed": streamed,
        "usage": chunks[-1].usage.total_tokens > 0,
        "call": [call.function.name, call.function.arguments],
        "after": after,
        "dimensions": len(vector),
        "models": model in [one.id for one in client.models.list()],
        "error": error,
    }


def with_litellm():
    import litellm

    ask = lambda **more: litellm.completion(
        model=f"openai/{model}", api_base=base, api_key=key, extra_headers=headers, **more
    )
    hello = [{"role": "user", "content": "Hello"}]
    parts = [one.choices[0].delta.content or "" for one in ask(messages=hello, stream=True)]
    called = ask(messages=[{"role": "user", "content": "call pick {}"}], tools=tools).choices[0]
    call = called.message.tool_calls[0]
    return {
        "whole": ask(messages=hello).choices[0].message.content,
        "streamed": "".join(parts),
        "call": [call.function.name, call.function.arguments],
        "finish": called.finish_reason,
    }


def with_langchain():
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings

    chat = ChatOpenAI(model=model, base_url=base, api_key=key, default_headers=headers, stream_usage=True)
    parts = list(chat.stream("Hello"))
    streamed = sum(parts[1:], parts[0])
    picker = chat.bind_tools(tools)
    ask = HumanMessage("call pick {}")
    pieces = list(picker.stream([ask]))
    called = sum(pieces[1:], pieces[0])
    [call] = called.tool_calls
    after = picker.invoke([ask, called, ToolMessage("red", tool_call_id=call["id"])])
    embedder = OpenAIEmbeddings(
        model=os.environ["EMBEDDER"], base_url=base, api_key=key, default_headers=headers, check_embedding_ctx_length=False
    )
    return {
        "whole": chat.invoke("Hello").content,
        "streamed": streamed.content,
        "usage": streamed.usage_metadata["total_tokens"] > 0,
        "call": [call["name"], call["args"]],
        "finish": called.response_metadata["finish_reason"],
        "after": after.content,
        "dimensions": len(embedder.embed_query("green cats")),
        "structured": chat.with_structured_output({"title": "Said", **SAID}).invoke("Hello"),
    }


SAID = {"type": "object", "properties": {"echo": {"type": "string"}}, "required": ["echo"]}
clients = {"openai": with_openai, "litellm": with_litellm, "langchain_openai": with_langchain}
print(json.dumps(clients[sys.argv[1]]()))
