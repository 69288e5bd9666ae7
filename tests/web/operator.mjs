import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.min.mjs";

ort.env.wasm.numThreads = 1; // more need a page that is cross-origin isolated

/** The operator in an exported file: values of shape [m, ...] in, a tensor with `data` and `dims` out. */
export async function load(url) {
  const session = await ort.InferenceSession.create(url);
  return async (values, shape) => {
    const { u } = await session.run({ v: new ort.Tensor("float32", values, shape) });
    return u;
  };
}
