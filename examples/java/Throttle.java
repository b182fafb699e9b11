// GO.THROTTLE with the JDK alone: a connection for each call, which is sent once. Limit.java uses it.
import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.*;
import java.net.*;

class Throttle {
    /** Returns limited, limit, remaining, retry_after, reset_after: times are seconds. The limit is 5 per minute. */
    static long[] take(String user, long units) throws IOException {
        return call("GO.THROTTLE", "user:" + user, "4", "5", "60", "" + units);
    }

    static long[] takeAndWait(String user, long units, int tries) throws Exception {
        long[] reply;
        while ((reply = take(user, units))[3] > 0 && --tries > 0) { // -1: admitted, or it never will be
            Thread.sleep((long) (reply[3] * 1000 * (1 + Math.random() / 10))); // the jitter spreads callers
        }
        return reply;
    }

    /** Sends a call whose reply is an array. A fault of ours is an IllegalStateException, a null in the array -1. */
    static long[] call(String... words) throws IOException {
        String text = "*" + words.length + "\r\n";
        for (String word : words) text += "$" + word.getBytes(UTF_8).length + "\r\n" + word + "\r\n";
        String[] addr = System.getenv("ADDR").split(":");
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(addr[0], Integer.parseInt(addr[1])), 500); // ms
            socket.setSoTimeout(500);
            socket.getOutputStream().write(text.getBytes(UTF_8));
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8));
            String line = in.readLine();
            if (line == null) throw new EOFException("the server closed the connection");
            if (line.matches("-(ERR (?!max)|WRONG|NOAUTH|NOPERM).*")) throw new IllegalStateException(line);
            if (line.charAt(0) != '*') throw new IOException(line); // the server cannot decide now
            long[] reply = new long[Integer.parseInt(line.substring(1))];
            for (int i = 0; i < reply.length; i++) reply[i] = Long.parseLong(in.readLine().substring(1));
            return reply;
        }
    }
}
